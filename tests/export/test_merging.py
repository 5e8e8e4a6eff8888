"""A worked partition merged: what the records say, what is left out, and a merge broken off."""

import orjson
import pyarrow.parquet
import pytest

from app.export import published
from app.export.choosing import Choice, Finish
from app.export.merging import merge
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import END_ID, THINK_CLOSE_ID
from tests.export.conftest import Merging, written

KEYS = [
    "id", "primary_id", "partition", "source", "input_ids", "loss_mask", "prompt_len", "seq_len",
    "n_supervised", "finish_reason", "stop_matched", "origin", "thinking", "reasoning_end",
    "prompt_sha256", "flags", "gen_id", "metadata",
]  # fmt: skip
SCRIPT: dict[str, list[object]] = {
    "@@fails": [{"json": [400, {"message": "no"}]}],
    "@@cut": [
        {
            "gen": {
                "output_ids": list(range(300, 360)),
                "meta_info": {"finish_reason": {"type": "length", "length": 60}},
            }
        }
    ],
    "@@empty": [{"gen": {"output_ids": [2], "text": ""}}],
    "*": ["ok with 40 output tokens"],
}
ROWS = ["a", "b @@fails", "c @@cut", "d", "e @@empty", "f"]


async def worked(merging: Merging, simulator: SimulatorThread, rows: list[str]) -> None:
    simulator.script(SCRIPT)
    merging.stage.max_new_tokens = 60
    merging.stage.fill_rows(rows)
    await merging.stage.work()


async def test_each_answer_is_a_record_and_every_sample_is_counted(
    merging: Merging, simulator: SimulatorThread
) -> None:
    await worked(merging, simulator, ROWS)

    done = merging.merge()

    states = merging.stage.states()
    assert states["b"] == "failed"
    assert states["e"] in ("empty", "suspect")
    (tally,) = done.tallies
    assert tally.n_samples == len(ROWS) == tally.n_kept + tally.dropped.total()
    assert tally.dropped == {"failed": 1, states["e"]: 1}
    records, answers = merging.records(), merging.stage.answers()
    assert [each["id"] for each in records] == ["p/a", "p/c", "p/d", "p/f"]
    for record in records:
        key = record["id"].removeprefix("p/")
        prompt = merging.stage.prompts[merging.stage.keys.index(key)]
        answer = answers[key]["output_ids"]
        assert list(record) == KEYS
        assert record["input_ids"] == prompt + answer
        assert record["loss_mask"] == [0] * len(prompt) + [1] * len(answer)
        assert (record["prompt_len"], record["n_supervised"]) == (len(prompt), len(answer))
        assert record["seq_len"] == len(record["input_ids"])
        assert record["gen_id"] == answers[key]["gen_id"]
        assert orjson.loads(record["metadata"])["rid"] == answers[key]["rid"]
    by_id = {each["id"]: each for each in records}
    assert (by_id["p/c"]["finish_reason"], by_id["p/c"]["stop_matched"]) == ("length", -1)
    assert (by_id["p/a"]["finish_reason"], by_id["p/a"]["stop_matched"]) == ("stop", END_ID)
    assert by_id["p/a"]["input_ids"][-1] == END_ID


async def test_what_stands_beside_the_records_agrees_with_them(
    merging: Merging, simulator: SimulatorThread
) -> None:
    await worked(merging, simulator, ROWS)
    done = merging.merge(with_parquet=True, with_text=True)

    records = merging.records()
    frequency: dict[str, int] = {}
    for record in records:
        for token in record["input_ids"][record["prompt_len"] :]:
            frequency[str(token)] = frequency.get(str(token), 0) + 1
    assert orjson.loads((merging.out / "token_freq.json").read_bytes()) == frequency
    manifest = published.read(merging.out)
    assert manifest is not None
    assert manifest["records"] == len(records)
    assert manifest["tokens"] == sum(each["seq_len"] for each in records)
    assert manifest["supervised_tokens"] == sum(frequency.values())
    assert manifest["shards"] == done.shards
    assert [path.name for path in sorted((merging.out / "data").iterdir())] == ["train-00000.jsonl"]
    table = pyarrow.parquet.read_table(merging.out / "parquet" / "train-00000.parquet")
    assert table.to_pylist() == records
    assert str(table.schema.field("input_ids").type) == "list<element: int32>"
    assert str(table.schema.field("loss_mask").type) == "list<element: int8>"
    assert all(isinstance(each["text"], str) for each in records)
    assert "| p | owner/dataset | 6 | 4 |" in (merging.out / "README.md").read_text()


@pytest.mark.parametrize(
    ("choice", "kept"),
    [
        (Choice(finish=frozenset({Finish.STOP})), ["p/a", "p/d", "p/f"]),
        (Choice(max_length=70), ["p/a", "p/d", "p/f"]),
        (Choice(min_output=50), ["p/c"]),
        (Choice(with_status=frozenset({"empty", "suspect"})), ["p/a", "p/c", "p/d", "p/e", "p/f"]),
    ],
    ids=["finish", "longest", "shortest", "with"],
)
async def test_what_is_not_wanted_is_left_out_and_counted(
    merging: Merging, simulator: SimulatorThread, choice: Choice, kept: list[str]
) -> None:
    await worked(merging, simulator, ROWS)

    (tally,) = merging.merge(choice).tallies

    assert [each["id"] for each in merging.records()] == kept
    assert tally.n_samples == len(ROWS) == len(kept) + tally.dropped.total()


async def test_reasoning_is_divided_by_its_ids(
    merging: Merging, simulator: SimulatorThread
) -> None:
    thought = [259, 300, 301, THINK_CLOSE_ID, 302, END_ID]
    simulator.script(
        {
            "@@thinks": [{"gen": {"output_ids": thought}}],
            "@@open": [
                {
                    "gen": {
                        "output_ids": [259, 300, 301],
                        "meta_info": {"finish_reason": {"type": "length", "length": 3}},
                    }
                }
            ],
            "*": ["ok"],
        }
    )
    merging.stage.max_new_tokens = 3
    merging.stage.fill_rows(["t @@thinks", "o @@open", "n"])
    await merging.stage.work()
    merging.merge(Choice(with_status=frozenset({"suspect"})))

    thinks, is_open, plain = merging.records()
    assert thinks["thinking"] is True
    assert thinks["input_ids"][thinks["reasoning_end"]] == THINK_CLOSE_ID
    assert thinks["reasoning_end"] == thinks["prompt_len"] + 3
    assert (is_open["thinking"], is_open["reasoning_end"]) == (True, -1)
    assert "reasoning_unclosed" in is_open["flags"].split(",")
    assert (plain["thinking"], plain["reasoning_end"]) == (False, -1)


class BrokenOffError(Exception):
    pass


@pytest.mark.slow
async def test_a_merge_that_was_broken_off_goes_on_and_gives_the_same_bytes(
    merging: Merging, simulator: SimulatorThread
) -> None:
    simulator.script({"*": ["ok with 40 output tokens"]})
    merging.stage.fill_rows([f"r{n}" for n in range(1_500)])
    await merging.stage.work()
    merging.merge(shard_tokens=20_000, with_parquet=True)
    whole = written(merging.out)
    merging.out = merging.out.with_name("broken")

    def broken_off(_name: str, n_samples: int) -> None:
        if n_samples >= 1_000:
            raise BrokenOffError

    with pytest.raises(BrokenOffError):
        merge(merging.order(shard_tokens=20_000, with_parquet=True), broken_off)
    left = written(merging.out)
    assert "manifest.json" not in left
    assert not [name for name in left if name.endswith(".part")]
    n_whole = sum(name.startswith("data/") for name in left)
    assert 0 < n_whole < sum(name.startswith("data/") for name in whole)
    before = {name: (merging.out / name).stat().st_mtime_ns for name in left}

    done = merging.merge(shard_tokens=20_000, with_parquet=True)

    assert done.n_resumed_shards == n_whole
    assert written(merging.out) == whole
    kept = [name for name in left if name.startswith("data/")]
    assert all((merging.out / name).stat().st_mtime_ns == before[name] for name in kept)
