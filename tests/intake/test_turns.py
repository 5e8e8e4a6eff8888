"""Records that ask turn by turn: their samples, and how a later turn comes to its prompt."""

import gzip
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import text as sql

from app.core.reasoning import ReasoningMarks
from app.core.states import PartitionState, SampleState
from app.core.types import Keep, Line
from app.errors import InputError
from app.files.kept_answers import KeptAnswer
from app.files.prompt_records import Prompt, parse_record
from app.files.turn_records import TurnRecords
from app.ledger import workers
from app.simulator.tokenizer import (
    END_ID,
    THINK_CLOSE_ID,
    THINK_OPEN_ID,
    decode,
    encode,
    encode_chat,
)
from app.tokenizing import TokenizingKeeper
from app.tokenizing.saying import Sayings
from tests.files.records_of import write_jsonl
from tests.intake.desk import Desk, until, user
from tests.ledger.hand import NOW, Hand

STOP = {"type": "stop", "matched": END_ID}


def talk(key: str, *turns: str, **more: object) -> dict[str, object]:
    messages = [{"role": "user", "content": each} for each in turns]
    return {"id": key, "messages": messages, "turns": "all", **more}


class Answering:
    """A worker of the desk's partition that writes whole lines, as real ones do."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        partition = desk.partition()
        worker_id = workers.register(desk.ledger, partition.id, 30, NOW)
        self.hand = Hand(desk.ledger, partition.id, worker_id)
        self.path = desk.output / "p" / "answers.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def answer(self, key: str, said: Sequence[int], text: str | None = "") -> None:
        """Claim all there is, keep this one with these ids, put the others back."""
        found = {each.key: each for each in self.hand.claim(100)}
        claim = found.pop(key)
        for other in found.values():
            self.hand.put_back(other)
        fields: Mapping[str, Any] = {
            "rid": claim.rid,
            "prompt_sha256": claim.prompt_sha256,
            "completion_tokens": len(said),
            "segments": [{"from_token": 0, "rid": claim.rid, "server": "s", "gen_id": "g"}],
            "output_ids": list(said),
            "text": decode(said) if text == "" else text,
            "finish_reason": STOP,
        }
        line = orjson.dumps(fields) + b"\n"
        offset = self.path.stat().st_size if self.path.exists() else 0
        with self.path.open("ab") as file:
            file.write(line)
        self.hand.line(0)  # makes the shard's row
        with self.desk.ledger.write() as connection:
            connection.execute(sql("UPDATE shard SET path = :path"), {"path": str(self.path)})
        self.hand.shard_bytes = offset
        keep = Keep(state=SampleState.OK, finish_reason="stop")
        entry = self.hand.settled(claim, keep, said)
        assert entry.line is not None
        placed = Line(
            shard_id=entry.line.shard_id, offset=offset, n_bytes=len(line), output_tokens=len(said)
        )
        self.hand.forget(claim)
        self.hand.tick(settled=(replace(entry, line=placed),))


def ids(text: str) -> list[int]:
    return [*encode(text), END_ID]


def chat(*said: str) -> list[int]:
    roles = ("user", "assistant")
    return encode_chat([{"role": roles[n % 2], "content": each} for n, each in enumerate(said)])


async def test_each_turn_of_each_replica_is_a_sample_in_its_place(desk: Desk) -> None:
    desk.write("p", [user("a", "x"), talk("t", "one", "two", "three"), 7, talk("b", "only")])
    desk.change(samples_per_prompt=2)

    await desk.submit()

    rows = desk.samples(desk.partition().id)
    found = [(row["position"], row["key"], row["replica"], row["turn"]) for row in rows]
    assert found == [
        (0, "a", 0, 1),
        (1, "a", 1, 1),
        (2, "t", 0, 1),
        (3, "t#turn2", 0, 2),
        (4, "t#turn3", 0, 3),
        (5, "t", 1, 1),
        (6, "t#turn2", 1, 2),
        (7, "t#turn3", 1, 3),
        (8, "2", 0, 1),
        (10, "b", 0, 1),
        (11, "b", 1, 1),
    ]
    assert [bool(row["awaited"]) for row in rows[2:5]] == [True, True, False]
    assert desk.partition().counts.total == 11
    plain = parse_record(user("t", "one"), 0, 1)
    assert isinstance(plain, Prompt)
    assert rows[2]["prompt_sha256"] == plain.prompt_sha256


async def test_an_id_that_a_turn_has_already_is_told(desk: Desk) -> None:
    desk.write("p", [talk("t", "one", "two"), user("t#turn2", "x")])

    await desk.submit()

    assert any('"t#turn2" at lines 1 and 2' in said for said in desk.said)


async def test_a_turn_is_prompted_with_what_was_said_before(desk: Desk) -> None:
    own = {"chat_template_kwargs": {"thinking": True}}
    desk.write("p", [user("a", "x"), talk("t", "one", "two", "three", **own)])
    partition = await desk.run()
    assert (partition.intake, partition.n_tokenized) == ("tokenized", 2)
    answering = Answering(desk)

    answering.answer("t", ids("Hello."))
    await desk.tokenize()
    answering.answer("t#turn2", ids("More."), text=None)  # its text was not known in time
    await desk.tokenize()

    rows = desk.by_key()
    assert desk.ids_of(rows["t#turn2"]) == chat("one", "Hello.", "two")
    assert desk.ids_of(rows["t#turn3"]) == chat("one", "Hello.", "two", "More.", "three")
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "two"},
    ]
    plain = parse_record({"id": "t", "messages": messages, **own}, 0, 1)
    assert isinstance(plain, Prompt)
    assert rows["t#turn2"]["prompt_sha256"] == plain.prompt_sha256


async def test_a_turn_too_long_for_the_context_is_rejected_and_the_rest_with_it(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(context_length=300)
    desk.write("p", [talk("t", "one", "two" * 20, "three")])
    await desk.run()
    answering = Answering(desk)

    answering.answer("t", ids("long " * 60))
    await desk.tokenize()

    rows = desk.by_key()
    assert rows["t#turn2"]["state"] == rows["t#turn3"]["state"] == "rejected"
    assert "context of 300" in rows["t#turn2"]["reason"]
    assert rows["t#turn3"]["reason"].startswith("turn 2 was rejected: the prompt has")
    assert desk.partition().counts.rejected == 2


async def test_a_limit_that_was_raised_meanwhile_bounds_the_next_turn(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(context_length=400)
    desk.write("p", [talk("t", "one", "two")])
    await desk.run()
    seen = desk.partition()
    answering = Answering(desk)
    answering.answer("t", ids("long " * 20))
    with desk.ledger.write() as connection:
        connection.execute(sql("UPDATE partition SET max_new_tokens = 390"))

    await desk.tokenize(view=seen)

    row = desk.by_key()["t#turn2"]
    assert row["max_new_tokens"] == 400 - 2 - row["prompt_tokens"]


async def test_the_keeper_asks_turn_after_turn_and_then_rests(desk: Desk) -> None:
    desk.write("p", [talk("t", "one", "two", "three")])
    await desk.submit()
    keeper = TokenizingKeeper(desk.ledger, desk.settings, desk.clock, desk.events.append)
    answering = Answering(desk)

    await keeper.look()
    await until(lambda: desk.partition().n_tokenized == 1, "the first turn")
    for n, key in enumerate(("t", "t#turn2"), start=2):
        answering.answer(key, ids("Yes."))
        await until(lambda n=n: desk.partition().n_tokenized == n, key)
    await keeper.look()
    asked = desk.simulator.stats.http_requests["/tokenize"]
    await keeper.look()

    assert desk.simulator.stats.http_requests["/tokenize"] == asked
    assert asked <= 2 + 1 + 3 + 2  # preflight, start token, turns
    await keeper.close()


async def test_a_file_that_changed_in_a_later_turn_pauses_the_partition(desk: Desk) -> None:
    desk.write("p", [talk("t", "one", "two")])
    await desk.run()
    Answering(desk).answer("t", ids("Yes."))
    desk.write("p", [talk("t", "one", "another")])
    keeper = TokenizingKeeper(desk.ledger, desk.settings, desk.clock, desk.events.append)

    await keeper.look()
    await until(lambda: desk.partition().state is PartitionState.PAUSED, "paused")

    assert "its content has changed" in desk.partition().reason
    assert desk.by_key()["t#turn2"]["state"] == "pending"
    await keeper.close()


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_records_are_found_by_number_in_any_order(tmp_path: Path, ending: str) -> None:
    rows = [user("a", "x"), talk("t", "one", "two"), talk("u", "é", "x\u2028y", "z")]
    plain = write_jsonl(tmp_path / "plain.jsonl", rows)
    path = tmp_path / f"p{ending}"
    path.write_bytes(gzip.compress(plain.read_bytes()) if "gz" in ending else plain.read_bytes())
    records = TurnRecords(path, tmp_path / "home", None)

    last, first = records.at(2), records.at(1)

    assert [part[0]["content"] for part in last.later] == ["x\u2028y", "z"]
    assert (first.key, first.messages) == ("t", [{"role": "user", "content": "one"}])
    for other in (0, 3):
        with pytest.raises(InputError, match="not what was scanned"):
            records.at(other)
    records.close()
    assert list((tmp_path / "home").iterdir()) == []


OPEN, CLOSE = THINK_OPEN_ID, THINK_CLOSE_ID
PLAIN_PROMPT = [1, *encode("assistant:")]


@pytest.mark.parametrize(
    ("prompt", "answer", "text", "reasoning", "content"),
    [
        pytest.param(PLAIN_PROMPT, encode("Hi"), "Hi", None, "Hi", id="no reasoning"),
        pytest.param(
            PLAIN_PROMPT,
            [OPEN, *encode("so"), CLOSE, *encode("Hi")],
            "<think>so</think>Hi",
            "so",
            "Hi",
            id="opened by itself",
        ),
        pytest.param(
            [*PLAIN_PROMPT, OPEN],
            [*encode("so\n"), CLOSE, *encode("\n\nHi ")],
            "so\n</think>\n\nHi ",
            "so\n",
            "\n\nHi ",
            id="opened by the prompt, nothing trimmed",
        ),
        pytest.param(
            [*PLAIN_PROMPT, OPEN],
            [*encode("so"), CLOSE, *encode("</think> is a mark")],
            "so</think></think> is a mark",
            "so",
            "</think> is a mark",
            id="the words of the mark are said",
        ),
        pytest.param(
            [*PLAIN_PROMPT, OPEN],
            [*encode("so"), CLOSE, *encode("Hi")],
            None,
            "so",
            "Hi",
            id="no text",
        ),
        pytest.param(PLAIN_PROMPT, encode("Hi"), None, None, "Hi", id="no text, no reasoning"),
        pytest.param(
            PLAIN_PROMPT,
            [*encode("a"), CLOSE, *encode("b")],
            None,
            None,
            "a</think>b",
            id="not open",
        ),
        pytest.param([*PLAIN_PROMPT, OPEN], encode("so"), "so", "so", "", id="never closed"),
    ],
)
async def test_reasoning_stands_apart_from_what_is_said(
    prompt: list[int],
    answer: list[int],
    text: str | None,
    reasoning: str | None,
    content: str,
) -> None:
    marks = ReasoningMarks(opening=frozenset({OPEN}), closing=frozenset({CLOSE}))
    kept = KeptAnswer(
        rid="r",
        prompt_sha256="s",
        completion_tokens=len(answer) + 1,
        segments=(),
        output_ids=array("I", [*answer, END_ID]),
        text=text,
        finish_reason=STOP,
    )

    async def detokenize(found: list[int]) -> str:
        return decode(found)

    said = await Sayings(detokenize, marks).message(kept, array("I", prompt))

    assert said["role"] == "assistant"
    assert (said.get("reasoning_content"), said["content"]) == (reasoning, content)
