"""From scanned samples to ids in the token file: kinds of prompts, lengths, replicas."""

import asyncio
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from app.core.spec import LengthPolicy
from app.errors import InputError
from app.events import IntakeProgress
from app.simulator.tokenizer import encode, encode_chat
from tests.intake.desk import Desk, user


def toy(text: str) -> list[int]:
    return encode_chat([{"role": "user", "content": text}])


async def test_inp_01_separators_inside_a_text_reach_the_server_as_they_are(desk: Desk) -> None:
    desk.copy("p", "separators.jsonl")

    partition = await desk.run()

    assert partition.counts.pending == 3
    ids = {key: desk.ids_of(row) for key, row in desk.by_key().items()}
    assert ids == {
        "ls": toy("one\u2028two"),
        "ps": toy("one\u2029two"),
        "nel": toy("one\u0085two"),
    }


async def test_inp_02_a_byte_order_mark_leaves_no_trace_in_the_ids(desk: Desk) -> None:
    desk.copy("p", "bom.jsonl")

    partition = await desk.run()

    assert partition.counts.pending == 2
    assert not any(0xEF + 3 in desk.ids_of(row) for row in desk.by_key().values())


async def test_inp_03_no_prompt_holds_a_carriage_return(desk: Desk) -> None:
    desk.copy("p", "crlf_blank.jsonl")

    await desk.run()

    assert not any(13 + 3 in desk.ids_of(row) for row in desk.by_key().values())


async def test_inp_07_every_shape_of_a_conversation_gives_the_same_ids(desk: Desk) -> None:
    desk.copy("p", "mixed_shapes.jsonl")

    await desk.run()

    ids = [desk.ids_of(row) for row in desk.samples(desk.partition().id)]
    assert len(ids) == 4
    assert all(each == ids[0] for each in ids)


async def test_inp_08_no_prompt_says_none(desk: Desk) -> None:
    desk.copy("p", "content_kinds.jsonl")

    await desk.run()

    sent = [desk.ids_of(row) for row in desk.by_key().values() if row["state"] == "pending"]
    assert sent == [toy("hello"), toy("hello")]


async def test_inp_10_the_start_token_stands_once_and_first(desk: Desk) -> None:
    desk.write("p", [user("a1", "x"), {"id": "t", "text": "raw"}])

    await desk.run()

    for row in desk.by_key().values():
        ids = desk.ids_of(row)
        assert ids[0] == 1
        assert ids.count(1) == 1
    assert desk.ids_of(desk.by_key()["t"]) == [1, *encode("raw")]


async def test_inp_10_a_text_that_brings_its_own_start_token_keeps_one(desk: Desk) -> None:
    desk.write("p", [{"id": "t", "text": "<s>x"}])
    desk.simulator.script(endpoints={"/tokenize": ["json!", {"tokens": [1, 1, 120]}]})

    await desk.run()

    assert desk.ids_of(desk.by_key()["t"]) == [1, 120]


async def test_inp_12_a_line_of_20_mb_is_rejected_with_its_token_count(
    desk: Desk, tmp_path: Path
) -> None:
    rows = [user("r1", "one"), user("r2", "a" * 20_000_000), user("r3", "three")]
    desk.write("p", rows)
    await desk.submit()
    # In a process of its own, because the simulator's memory is not ours to count.
    program = (
        "import asyncio, resource, sys\n"
        "from pathlib import Path\n"
        "from app.simulator.server import SimulatorThread\n"
        "from tests.intake.desk import Desk\n"
        "simulator = SimulatorThread(port=0)\n"
        "simulator.url = sys.argv[2]\n"
        "desk = Desk(Path(sys.argv[1]), simulator)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "asyncio.run(desk.tokenize())\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )

    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program, str(tmp_path), desk.simulator.url],
        capture_output=True,
        text=True,
        check=True,
    )

    rows_by_key = desk.by_key()
    assert rows_by_key["r1"]["state"] == rows_by_key["r3"]["state"] == "pending"
    assert rows_by_key["r2"]["state"] == "rejected"
    assert rows_by_key["r2"]["prompt_tokens"] == 20_000_000
    assert (
        "about 20,000,000 tokens, which does not fit the context of 32,768"
        in (rows_by_key["r2"]["reason"])
    )
    assert int(done.stdout) < 400_000


async def test_srv_13_a_prompt_longer_than_the_context_is_rejected_with_both_numbers(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(context_length=4096)
    desk.write("p", [user("l1", "x" * 5000), user("l2", "short")])

    partition = await desk.run()

    rows = desk.by_key()
    n_tokens = len(toy("x" * 5000))
    assert (rows["l1"]["state"], rows["l2"]["state"]) == ("rejected", "pending")
    assert f"{n_tokens:,}" in rows["l1"]["reason"]
    assert "context of 4,096" in rows["l1"]["reason"]
    assert rows["l1"]["prompt_tokens"] == n_tokens
    assert (partition.counts.pending, partition.counts.rejected) == (1, 1)
    report = (desk.output / "p" / "rejected.jsonl").read_bytes().splitlines()
    assert [orjson.loads(line)["id"] for line in report] == ["l1"]
    assert "/generate" not in desk.simulator.stats.http_requests


async def test_srv_15_an_answer_limit_that_does_not_fit_is_clamped_and_recorded(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(context_length=4096)
    desk.write("p", [{"id": "v1", "input_ids": [7] * 4000}, {"id": "v2", "input_ids": [7] * 10}])
    desk.own("p", max_new_tokens=512)
    desk.change(vocabulary_size=2048)

    await desk.run()

    rows = desk.by_key()
    assert rows["v1"]["max_new_tokens"] == 4096 - 2 - 4000
    assert rows["v2"]["max_new_tokens"] is None  # the partition's 512
    assert desk.partition().max_new_tokens == 512


async def test_srv_15_or_rejected_where_that_is_the_policy(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(context_length=4096)
    desk.write("p", [{"id": "v1", "input_ids": [7] * 4000}, {"id": "v2", "input_ids": [7] * 10}])
    desk.own("p", max_new_tokens=512)
    desk.change(vocabulary_size=2048, length_policy=LengthPolicy.REJECT)

    await desk.run()

    rows = desk.by_key()
    assert rows["v1"]["state"] == "rejected"
    assert "4,000 tokens and max_new_tokens is 512" in rows["v1"]["reason"]
    assert rows["v2"]["state"] == "pending"


async def test_a_records_own_answer_limit_is_the_one_that_is_clamped(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(context_length=4096)
    own = {"sampling_params": {"max_new_tokens": 100}}
    desk.write(
        "p",
        [{"id": "a", "input_ids": [7] * 4000, **own}, {"id": "b", "input_ids": [7] * 9, **own}],
    )
    desk.change(vocabulary_size=2048)

    await desk.run()

    rows = desk.by_key()
    assert (rows["a"]["max_new_tokens"], rows["b"]["max_new_tokens"]) == (94, 100)


async def test_ids_outside_the_vocabulary_are_rejected_and_never_written(desk: Desk) -> None:
    desk.write("p", [{"id": "in", "input_ids": [5, 2047]}, {"id": "out", "input_ids": [5, 2048]}])
    desk.change(vocabulary_size=2048)

    partition = await desk.run()

    rows = desk.by_key()
    assert desk.ids_of(rows["in"]) == [5, 2047]
    assert rows["out"]["reason"] == "input_ids holds 2048, the vocabulary has 2048 ids"
    assert partition.token_file_tokens == 2
    assert desk.tokens_at(partition).stat().st_size == 8


async def test_replicas_of_a_record_share_one_range_of_ids(desk: Desk) -> None:
    desk.write("p", [user(f"a{n}", f"text {n}") for n in range(300)])
    desk.change(samples_per_prompt=3)

    partition = await desk.run()

    rows = desk.samples(partition.id)
    assert len(rows) == 900
    assert {row["claim_rank"] for row in rows} == {1}
    by_record: dict[int, set[int]] = {}
    for row in rows:
        by_record.setdefault(row["record_index"], set()).add(row["token_offset"])
    assert all(len(offsets) == 1 for offsets in by_record.values())
    assert [desk.ids_of(row) for row in rows[::300]] == [
        toy("text 0"),
        toy("text 100"),
        toy("text 200"),
    ]
    assert desk.simulator.stats.http_requests["/tokenize"] < 300 + 32 + 3 + 1  # the golden strings
    offsets = [row["token_offset"] for row in rows]
    assert offsets == sorted(offsets)  # in input order


async def test_template_arguments_and_tools_are_sent_merged(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    desk.write("p", [user("a", "x", tools=tools, chat_template_kwargs={"thinking": False})])
    desk.change(chat_template_kwargs={"thinking": True, "more": 1})
    bodies = watched_bodies(monkeypatch)

    await desk.run()

    asked = [body for body in bodies if "messages" in body]
    assert asked
    assert all(
        body
        == {
            "messages": [{"role": "user", "content": "x"}],
            "tools": tools,
            "chat_template_kwargs": {"thinking": False, "more": 1},
        }
        for body in asked
    )


def watched_bodies(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """Return a list that every body of /tokenize is added to, as the simulator reads it."""
    from app.simulator import routes  # noqa: PLC0415 - only here

    bodies: list[dict[str, object]] = []
    real = routes.TOKENIZERS["/tokenize"]

    def watched(body: dict[str, object], settings: object) -> object:
        bodies.append(body)
        return real(body, settings)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setitem(routes.TOKENIZERS, "/tokenize", watched)
    return bodies


async def test_progress_is_told_and_the_first_samples_are_claimable_early(desk: Desk) -> None:
    desk.write("p", [user(f"a{n}", "x") for n in range(600)])

    await desk.run()

    told = [one.n_samples for one in desk.events if isinstance(one, IntakeProgress)]
    assert told[-1] == 600
    assert len(told) >= 3
    assert told == sorted(told)


async def test_a_prompt_file_that_changed_since_the_scan_is_refused(desk: Desk) -> None:
    path = desk.write("p", [user("a", "x"), user("b", "y"), user("c", "z")])
    await desk.submit()
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(rows[0] + rows[1].replace(b"y", b"q") + rows[2])

    with pytest.raises(InputError, match=r"record 2 \(line 2\) has changed"):
        await desk.tokenize()

    assert desk.partition().counts.pending == 3
    path.write_bytes(b"".join(rows))
    assert (await desk.tokenize()).n_tokenized == 3


async def test_memory_stays_bounded_over_many_large_prompts(desk: Desk) -> None:
    desk.write("p", [user(f"a{n}", "y" * 200_000) for n in range(60)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    partition = await desk.run()

    assert partition.counts.rejected == 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
