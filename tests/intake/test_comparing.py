"""Ids of records against the server's own, and one tokenizer for the whole of a run."""

import gzip
from pathlib import Path

import orjson
import pytest

from app.core.golden import STRINGS
from app.errors import ConflictError
from app.files.spread_lines import line_number, spread_lines
from app.ledger import runs
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import encode_chat
from tests.intake.desk import Desk, user


@pytest.fixture
def knowing(desk: Desk) -> Desk:
    """A desk whose spec says how many ids the model has."""
    desk.change(vocabulary_size=2048)
    return desk


def with_ids(n: int, wrong: int | None = None) -> list[dict[str, object]]:
    rows = []
    for place in range(n):
        row = user(f"k{place}", f"question {place}")
        ids = encode_chat([{"role": "user", "content": f"question {place}"}])
        if place == wrong:
            ids[3] += 1
        rows.append({**row, "input_ids": ids})
    return rows


async def test_ids_that_are_the_servers_are_said_to_be(knowing: Desk) -> None:
    desk = knowing
    desk.write("p", with_ids(200))

    report = await desk.check()

    assert report.errors == ()
    assert "partition p: the input_ids of 32 records are the server's" in report.notices


@pytest.mark.parametrize("name", ["prompts.jsonl", "prompts.jsonl.gz"])
async def test_a_difference_names_partition_file_line_and_both_neighbourhoods(
    knowing: Desk, name: str
) -> None:
    desk = knowing
    path = desk.write("p", with_ids(20, wrong=13))
    if name.endswith(".gz"):
        (path.parent / name).write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    ours = encode_chat([{"role": "user", "content": "question 13"}])

    (error,) = (await desk.check()).errors

    assert error.startswith(f"partition p: {path.parent / name}, line 14: its input_ids are not")
    begin = " ".join(map(str, ours[:3]))
    assert f"first at position 3, {begin} [{ours[3] + 1}]" in error
    assert f"{begin} [{ours[3]}]" in error


async def test_a_difference_in_the_second_half_of_a_file_is_found(knowing: Desk) -> None:
    desk = knowing
    rows = with_ids(2_000)
    for row in rows[1_000:]:
        row["input_ids"] = [5, 6]
    desk.write("p", rows)

    (error,) = (await desk.check()).errors

    assert "line 1,001: its input_ids are not" in error


async def test_ids_alone_are_warned_of(knowing: Desk) -> None:
    desk = knowing
    desk.write("p", [{"id": "a", "input_ids": [5, 6]}, *with_ids(1)])

    report = await desk.check()

    assert report.errors == ()
    assert any("nothing proves that they are of this model's" in one for one in report.warnings)


@pytest.mark.parametrize("whole_bytes", [0, 1_000_000], ids=["by_bytes", "by_number"])
def test_lines_are_spread_over_the_file_and_each_is_whole(tmp_path: Path, whole_bytes: int) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [orjson.dumps({"n": n, "pad": "x" * (n * 37 % 90)}) + b"\n" for n in range(500)]
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(rows))

    found = spread_lines(path, 32, whole_bytes=whole_bytes)

    numbers = [orjson.loads(each.content)["n"] for each in found]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 32
    assert numbers[0] == 0
    assert numbers[-1] > 450
    assert [line_number(path, each.offset) - 1 for each in found] == numbers
    assert found == spread_lines(path, 32, whole_bytes=whole_bytes)


def test_a_place_at_the_beginning_of_a_line_takes_that_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(b'{"n": %3d}\n' % n for n in range(64)))
    found = spread_lines(path, 32, whole_bytes=0)
    assert [orjson.loads(each.content)["n"] for each in found] == list(range(0, 64, 2))


@pytest.mark.parametrize("n_rows", [0, 1, 5, 32, 33])
def test_of_a_short_file_every_line_is_taken_once(tmp_path: Path, n_rows: int) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(b'{"n": %d}\n' % n for n in range(n_rows)))
    found = [orjson.loads(each.content)["n"] for each in spread_lines(path, 32)]
    assert found == sorted(set(found))
    assert len(found) == min(n_rows, 32)


async def test_a_run_is_refused_by_a_server_with_another_tokenizer_and_goes_on_with_its_own(
    desk: Desk,
) -> None:
    desk.write("p", [user("a", "x")])
    run = await desk.submit()

    with SimulatorThread(port=0, template="toy-thinking") as other:
        desk.url(other.url)
        report = await desk.check()
        assert report.errors == ()
        with pytest.raises(
            ConflictError, match="tokenizer: golden strings differ: first"
        ) as raised:
            await desk.submit_checked(report)
    assert repr("<think>so</think>") in str(raised.value)

    desk.url(desk.simulator.url)
    assert (await desk.submit()).id == run.id


async def test_a_run_of_an_earlier_version_goes_on_and_gets_its_mark(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    run = await desk.submit()
    stored = orjson.loads(run.fingerprint_json)
    mark = stored["fingerprint"].pop("tokenizer_golden")
    assert len(mark["ids"]) == len(STRINGS)
    with desk.ledger.write() as connection:
        connection.exec_driver_sql(
            "UPDATE run SET fingerprint_json = ?", (orjson.dumps(stored).decode(),)
        )

    await desk.submit()

    again = orjson.loads(runs.get_run(desk.ledger, run.id).fingerprint_json)
    assert again["fingerprint"]["tokenizer_golden"] == mark


async def test_two_servers_with_different_tokenizers_are_refused(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    with SimulatorThread(port=0, template="toy-thinking") as other:
        desk.change(server_urls=(desk.simulator.url, other.url))
        errors = (await desk.check()).errors
    assert any("have different tokenizers: golden strings differ" in one for one in errors)
