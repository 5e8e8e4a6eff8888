"""`longwatch prepare` as it is started: several processes, one that dies, an end from outside."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.process.run_process import ROOT, wait_for
from tests.sources.desk import MULTI_MEMBER_GZIP, Desk, lines_of, user


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def started(spec: Path, *flags: str) -> "subprocess.Popen[str]":
    """Start a preparation that leads a process group, as a shell would.

    Ctrl-C means an end to it, even where these tests run in the background and ignore it.
    """
    command = [sys.executable, "-m", "app", "prepare", str(spec), *flags]
    return subprocess.Popen(
        ["/usr/bin/env", "--default-signal=INT", *command],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    )  # fmt: skip


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, error = process.communicate(timeout=60)
    assert "Traceback" not in out + error
    return process.returncode, out, error


def prepared(spec: Path, *flags: str) -> tuple[int, str, str]:
    return ended(started(spec, *flags))


def written(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def sources_at_work(process: "subprocess.Popen[str]") -> list[int]:
    """Return the processes that prepare a source, also of a parent that has died."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            group = os.getpgid(int(entry.name)) if b"spawn_main" in words else None
        except OSError:
            continue
        if group == process.pid:
            found.append(int(entry.name))
    return found


@pytest.fixture
def blocked(desk: Desk) -> Path:
    """Give a spec whose second source is never told anything: a pipe that nobody writes to."""
    desk.write("good.jsonl", user("a", "x"))
    os.mkfifo(desk.folder / "never.jsonl")
    return desk.spec(
        "[prepare]\nprocesses = 2\n"
        '[source.good]\npath = "good.jsonl"\n'
        '[source.never]\npath = "never.jsonl"\nrecipe = "chat_messages"\n'
    )


@pytest.mark.slow
def test_a_source_that_fails_leaves_the_others_and_any_number_of_processes_the_same_bytes(
    desk: Desk,
) -> None:
    (desk.folder / "cut.jsonl.gz").write_bytes(MULTI_MEMBER_GZIP[:-12])
    desk.write("one.jsonl", *(user(f"k{n % 40}", f"text {n}") for n in range(60)), b"{broken")
    desk.write("two.jsonl", *(user(None, f"text {n}") for n in range(30, 90)))
    desk.write("three.jsonl", *(user(None, f"text {n}") for n in range(55, 95)))
    text = (
        "[prepare]\nprocesses = {}\noutput_dir = {}\ndeduplicate_across = true\n"
        '[source.one]\npath = "one.jsonl"\nrows = 50\n'
        '[source.cut]\npath = "cut.jsonl.gz"\n'
        '[source.two]\npath = "two.jsonl"\n'
        '[source.three]\npath = "three.jsonl"\n'
    )
    results = []
    for n in (1, 3):
        code, out, error = prepared(desk.spec(text.format(n, f'"out{n}"')))
        assert code == 1
        assert f"error: source cut: {desk.folder / 'cut.jsonl.gz'} is damaged or cut short" in error
        assert "1 of 4 sources are not prepared; the others were not compared with them." in error
        assert "one: 61 rows, 50 kept" in out
        results.append(written(desk.folder / f"out{n}"))

    assert results[0] == results[1]
    assert {name.split("/")[0] for name in results[0]} == {"one", "two", "three"}
    says = {
        f"{name}/{record['id']}": record["messages"][0]["content"]
        for name in ("one", "two", "three")
        for record in lines_of(desk.folder / "out1" / name / "prompts.jsonl")
    }
    assert len(set(says.values())) == len(says)  # nothing is asked twice
    assert sum(name.startswith("one/") for name in says) == 50
    for name, first, n_rows in (("two", 30, 60), ("three", 55, 40)):
        skipped = lines_of(desk.folder / "out1" / name / "skipped.jsonl")
        assert {one["reason"] for one in skipped} == {"duplicate_elsewhere"}
        assert all(says[one["of"]] == f"text {first + one['row']}" for one in skipped)
        report = orjson.loads((desk.folder / "out1" / name / "report.json").read_bytes())
        assert report["skipped"] == {"duplicate_elsewhere": len(skipped)}
        assert report["rows_in"] == report["kept"] + len(skipped) == n_rows


@pytest.mark.slow
def test_a_process_that_dies_is_an_error_of_its_own_source(desk: Desk, blocked: Path) -> None:
    process = started(blocked)
    wait_for((desk.folder / "prepared/good/prompts.jsonl").exists, "the other source")
    wait_for(lambda: len(sources_at_work(process)) == 1, "the blocked process alone")

    (blocked_pid,) = sources_at_work(process)
    os.kill(blocked_pid, signal.SIGKILL)
    code, out, error = ended(process)

    assert code == 1
    assert "error: source never: the process of source never was ended by SIGKILL" in error
    assert "good: 1 row, 1 kept" in out
    assert sorted(path.name for path in (desk.folder / "prepared").iterdir()) == ["good"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_end_from_outside_leaves_no_process_and_no_draft(
    desk: Desk, number: signal.Signals
) -> None:
    """Ctrl-C reaches the whole group, SIGTERM the command alone; both while rows are written."""
    desk.write("big.jsonl", *[orjson.dumps(user(None, "the same"))] * 300_000)
    os.mkfifo(desk.folder / "never.jsonl")
    spec = desk.spec(
        '[prepare]\nprocesses = 2\n[source.big]\npath = "big.jsonl"\n'
        '[source.never]\npath = "never.jsonl"\nrecipe = "sharegpt"\n'
    )
    process = started(spec)
    wait_for(lambda: list(desk.folder.glob("prepared/big/.preparing-*")), "the draft")
    wait_for(lambda: len(sources_at_work(process)) == 2, "both processes")

    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    code, _, error = ended(process)

    assert (code, error.count("\n")) == (3, 1)
    assert error.startswith(
        "Stopped; the partitions of sources that had not ended are as they were"
    )
    assert sources_at_work(process) == []
    assert list((desk.folder / "prepared").iterdir()) == []


@pytest.mark.slow
def test_two_preparations_never_write_one_partition(desk: Desk, blocked: Path) -> None:
    first = started(blocked)
    wait_for(lambda: sources_at_work(first), "the first one at work")

    code, _, error = prepared(blocked)

    os.killpg(first.pid, signal.SIGINT)
    assert ended(first)[0] == 3
    assert code == 1
    assert f"another preparation writes {desk.folder / 'prepared/good'} now" in error


@pytest.mark.slow
def test_a_killed_preparation_is_finished_by_the_next_one(desk: Desk) -> None:
    """Its processes hear nobody any more and end; what they wrote is removed."""
    desk.write("big.jsonl", *[orjson.dumps(user(None, "the same"))] * 300_000)
    spec = desk.spec('[source.big]\npath = "big.jsonl"\n')
    process = started(spec)
    wait_for(lambda: list(desk.folder.glob("prepared/big/.preparing-*")), "the draft")

    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: not sources_at_work(process), "the end of its process")
    assert not (desk.folder / "prepared/big/prompts.jsonl").exists()

    desk.write("big.jsonl", user(None, "the same"))
    assert prepared(spec)[0] == 0
    assert sorted(path.name for path in (desk.folder / "prepared/big").iterdir()) == [
        "kept.jsonl", "prompts.jsonl", "report.json", "skipped.jsonl",
    ]  # fmt: skip
