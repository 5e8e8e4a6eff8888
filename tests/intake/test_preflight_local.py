"""What a start refuses for folders, ledger and prompt files, without asking a server for it."""

import base64
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.files.test_inp_cases import MULTI
from tests.intake.desk import Desk, user

NOBODY = 65_534


@pytest.fixture
def open_desk(make_desk: Callable[..., Desk]) -> Iterator[Desk]:
    """A desk whose home and output lie where an ordinary user may go, with one good prompt."""
    desk = make_desk()
    desk.write("p", [user("a", "x")])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        desk.output = folder / "output"
        desk.output.mkdir(mode=0o777)
        desk.output.chmod(0o777)
        desk.home = folder / "home"
        desk.home.mkdir(mode=0o777)
        desk.home.chmod(0o777)
        prompts = folder / "prompts"
        prompts.mkdir()
        (prompts / "p.jsonl").write_bytes((desk.prompts / "p" / "prompts.jsonl").read_bytes())
        desk.change(output_dir=str(desk.output), prompts_dir=str(prompts))
        desk.settings = desk.settings.model_copy(update={"home": desk.home})
        yield desk
        desk.output.chmod(0o777)


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Give up the rights of root for a while, where the tests have them."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_led_05_a_read_only_output_folder_is_named_and_no_server_asked(
    open_desk: Desk,
) -> None:
    open_desk.output.chmod(0o555)

    with ordinary_user():
        report = await open_desk.check()

    (error,) = report.errors
    assert str(open_desk.output) in error
    assert "lacks the right to write" in error
    assert open_desk.simulator.stats.http_requests == {}
    assert "no server was asked, because folders cannot be written" in report.notices


async def test_led_05_a_read_only_ledger_is_named(open_desk: Desk) -> None:
    ledger = open_desk.home / "ledger.db"

    with ordinary_user():
        ledger.write_bytes(b"")
        ledger.chmod(0o444)
        report = await open_desk.check()

    assert report.errors == (
        f"{ledger} has mode 0444, the right to write is missing; chmod u+w it",
    )
    assert open_desk.simulator.stats.http_requests == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")
async def test_led_05_an_output_file_of_another_user_is_named(open_desk: Desk) -> None:
    theirs = open_desk.output / "p" / "responses.jsonl"
    theirs.parent.mkdir()
    theirs.write_bytes(b"{}\n")
    theirs.parent.chmod(0o777)

    with ordinary_user():
        report = await open_desk.check()

    assert report.errors == (
        f"{theirs} belongs to the user root; move it away or run as that user",
    )
    assert open_desk.simulator.stats.http_requests == {}


async def test_a_check_leaves_nothing_behind(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    before = sorted(desk.folder.rglob("*"))

    report = await desk.check()

    assert report.errors == ()
    assert sorted(desk.folder.rglob("*")) == before


async def test_every_problem_is_told_at_once(desk: Desk) -> None:
    desk.write("good", [user("a", "x")])
    desk.own("good")
    desk.own("gone")
    desk.own("away", prompts=str(desk.folder / "nowhere.jsonl"))
    desk.change(sampling={"stop_regex": "x", "temperature": 1.0})
    desk.simulator.set(version="0.5.2")

    report = await desk.check()

    told = "\n".join(report.errors)
    assert "partition gone has no prompt file" in told
    assert "there are good" in told
    assert f"partition away has no prompt file {desk.folder}/nowhere.jsonl" in told
    assert "'stop_regex' needs SGLang 0.5.3 or newer, the server is 0.5.2" in told
    assert "SGLang 0.5.2 has no /tokenize" in told
    assert len(report.errors) == 4


async def test_an_empty_prompts_folder_says_what_is_looked_for(desk: Desk) -> None:
    report = await desk.check()

    (error,) = report.errors
    assert "<partition>/prompts.jsonl" in error


async def test_a_class_that_cannot_be_told_is_an_error(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    long = desk.spec.classes["long"]
    desk.change(classes={"one": long, "two": long})

    report = await desk.check()

    (error,) = report.errors
    assert "partition p has no class" in error


async def test_inp_11_a_gzip_cut_short_is_an_error_of_its_partition(desk: Desk) -> None:
    folder = desk.prompts / "cut"
    folder.mkdir()
    (folder / "prompts.jsonl.gz").write_bytes(base64.b64decode(MULTI)[:-12])
    desk.write("whole", [user("a", "x")])

    report = await desk.check()

    (error,) = report.errors
    assert "cut/prompts.jsonl.gz is damaged or cut short" in error
    assert list(report.partitions) == ["whole"]


async def test_inp_13_the_same_file_given_twice_is_run_once_with_a_notice(desk: Desk) -> None:
    day1 = desk.write("day1", [user("a", "x"), user("b", "y")])
    desk.write("day2", [user("a", "x"), user("b", "y"), user("c", "z")])
    link = desk.folder / "link.jsonl"
    link.symlink_to(day1)
    desk.own("day1")
    desk.own("day2")
    desk.own("dotted", prompts=str(desk.prompts / "day1" / ".." / "day1" / "prompts.jsonl"))
    desk.own("linked", prompts=str(link))

    run = await desk.submit()

    report = await desk.check()
    assert list(report.partitions) == ["day1", "day2"]
    assert [notice for notice in report.notices if "is the prompt file of day1 already" in notice]
    assert desk.partition("day1").counts.total == 2
    assert desk.partition("day2").counts.total == 3
    assert run.name == "test"


async def test_a_file_that_is_no_ledger_is_an_error(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    other = desk.folder / "other"
    other.mkdir()
    (other / "ledger.db").write_bytes(b"not a database at all" * 100)

    report = await desk.check(home=other)

    (error,) = report.errors
    assert "is not a Longwatch ledger" in error


async def test_a_ledger_of_a_newer_version_is_an_error(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    with desk.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'future'")

    report = await desk.check()

    (error,) = report.errors
    assert "has schema future, which this version does not know" in error


async def test_too_little_space_is_an_error_and_little_a_warning(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])

    full = await desk.check(disk_stop_bytes=2**62)
    low = await desk.check(disk_low_bytes=2**62)

    assert "nothing is begun under" in full.errors[0]
    assert low.errors == ()
    assert "bytes free" in low.warnings[0]


async def test_records_that_will_be_rejected_are_shown_before(desk: Desk) -> None:
    desk.copy("p", "broken_middle.jsonl")

    report = await desk.check()

    assert report.errors == ()
    (notice,) = [one for one in report.notices if "will be rejected" in one]
    assert "2 of the first 5 records" in notice
    assert "line 2: broken JSON" in notice
