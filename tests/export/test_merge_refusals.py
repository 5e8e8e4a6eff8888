"""What a merge leaves as it is: the same again, other data, lines that are not a sample's own."""

from typing import Any

import pytest

from app.errors import ConflictError, StorageError
from app.export import published
from app.export.choosing import Choice, Finish
from app.export.merging import merge
from app.export.tally import Merged
from app.simulator.server import SimulatorThread
from tests.export.conftest import Merging, written
from tests.export.test_merging import ROWS, worked


async def test_the_same_again_changes_nothing_and_something_else_is_refused(
    merging: Merging, simulator: SimulatorThread
) -> None:
    await worked(merging, simulator, ROWS)
    first = merging.merge()
    before = {name: (merging.out / name).stat().st_mtime_ns for name in written(merging.out)}

    again = merging.merge()
    with pytest.raises(ConflictError, match="holds the merge of something else"):
        merging.merge(Choice(min_output=2))

    assert again.is_unchanged
    assert _counts(again) == _counts(first)
    assert before == {name: (merging.out / name).stat().st_mtime_ns for name in before}
    replaced = merging.merge(Choice(finish=frozenset({Finish.LENGTH})), may_overwrite=True)
    assert [each["id"] for each in merging.records()] == ["p/c"]
    assert replaced.tallies[0].n_kept == 1


def _counts(done: Merged) -> list[dict[str, Any]]:
    return [each.stored() for each in done.tallies]


async def test_files_of_somebody_else_are_not_replaced(
    merging: Merging, simulator: SimulatorThread
) -> None:
    await worked(merging, simulator, ["a"])
    mine = merging.out / "data" / "train-00000.jsonl"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine\n")

    with pytest.raises(ConflictError, match="files that are no merge's"):
        merging.merge()

    assert mine.read_bytes() == b"mine\n"


async def test_a_line_that_is_not_the_samples_own_is_told_with_its_place(
    merging: Merging, simulator: SimulatorThread
) -> None:
    simulator.script({"*": ["ok"]})
    merging.stage.fill_rows(["a", "d"])  # both are answered with the same three ids
    await merging.stage.work()
    (shard,) = (merging.stage.output / "p").glob("responses-*")
    whole = shard.read_bytes()
    first, second = whole.splitlines(keepends=True)
    assert len(first) == len(second)
    for damaged, said in (
        (second + first, "this is the answer of"),
        (first.replace(b'"completion_tokens":3', b'"completion_tokens":4') + second, "4 token"),
        (b"x" * (len(first) - 1) + b"\n" + second, "no answer of ours"),
        (whole[:-5], "ends 5 bytes before"),
    ):
        shard.write_bytes(damaged)
        with pytest.raises(StorageError, match=said) as raised:
            merging.merge()
        assert str(shard) in str(raised.value)
        assert published.read(merging.out) is None


def test_two_merges_of_one_folder_do_not_meet(merging: Merging) -> None:
    merging.stage.fill_rows([])

    def nested(_name: str, _n: int) -> None:
        with pytest.raises(ConflictError, match="another merge works"):
            merging.merge()

    merge(merging.order(), nested)
    assert published.read(merging.out) is not None
