"""Conversations asked turn by turn: written as a run's prompts, and what must come of them.

The oracle is the simulator's own model, asked for each turn behind the answers that the run kept.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from app.core.states import KEPT
from app.files.prompt_records import Prompt, parse_record
from app.simulator.answers import LengthModel, answer
from app.simulator.tokenizer import decode, encode_chat
from tests import books
from tests.process.run_process import RunProcess

PARTITION = "B1_p"
SYSTEM = "Be brief."
Conversation = Sequence[str]


def write_conversations(run: RunProcess, conversations: Sequence[Conversation]) -> None:
    """Write each as a record with `turns`; every second one begins with a system text."""
    folder = run.folder / "prompts"
    folder.mkdir(exist_ok=True)
    rows = [
        orjson.dumps({"id": f"c{n}", "messages": asked(n, each), "turns": "all"})
        for n, each in enumerate(conversations)
    ]
    (folder / f"{PARTITION}.jsonl").write_bytes(b"\n".join(rows) + b"\n")


def asked(number: int, conversation: Conversation) -> list[dict[str, object]]:
    system = [("system", SYSTEM)] if number % 2 else []
    said = [*system, *(("user", text) for text in conversation)]
    return [{"role": role, "content": text} for role, text in said]


def sealed(run: RunProcess) -> list[dict[str, Any]]:
    content = (run.output / PARTITION / "responses.jsonl").read_bytes()
    return [orjson.loads(line) for line in content.splitlines()]


def rows_of(run: RunProcess) -> dict[str, Mapping[str, Any]]:
    (partition,) = run.partitions()
    with run.ledger() as ledger:
        return books.rows(ledger, partition.id)


def assert_asked_on_what_is_kept(
    run: RunProcess,
    conversations: Sequence[Conversation],
    lengths: LengthModel,
    cap: int,
    replicas: int = 1,
) -> None:
    """Check that each kept turn answers the record's turns and the very answers in the output.

    And that it is there once, in input order, and that no turn has one whose parent is not ok.
    """
    lines = sealed(run)
    rows = rows_of(run)
    places = [(line["index"], line.get("replica", 0), line.get("turn", 1)) for line in lines]
    assert places == sorted(set(places))
    assert len(lines) == sum(row["state"] in KEPT for row in rows.values()) or replicas > 1
    by_place = dict(zip(places, lines, strict=True))
    for (index, replica, turn), line in by_place.items():
        before = [by_place[index, replica, each] for each in range(1, turn)]
        assert all(each["status"] == "ok" for each in before)
        messages = behind(asked(index, conversations[index]), before)
        prompt = encode_chat(messages)
        assert line["output_ids"] == list(answer(prompt, lengths, cap)), line["id"]
        assert line["prompt_tokens"] == len(prompt)
        plain = parse_record({"messages": messages}, 0, 1)
        assert isinstance(plain, Prompt)
        assert line["prompt_sha256"] == plain.prompt_sha256
        assert line["id"] == f"c{index}" + (f"#turn{turn}" if turn > 1 else "")


def behind(
    messages: Sequence[Mapping[str, object]], answers: Sequence[Mapping[str, Any]]
) -> list[dict[str, object]]:
    """Return the messages of the turn behind these answers."""
    replies = (decode(each["output_ids"]) for each in answers)
    found: list[dict[str, object]] = []
    for message in messages:
        if message["role"] == "user" and any(each["role"] == "user" for each in found):
            reply = next(replies, None)
            if reply is None:
                break
            found.append({"role": "assistant", "content": reply})
        found.append(dict(message))
    return found
