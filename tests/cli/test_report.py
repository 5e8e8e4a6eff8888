"""`report`: a run of hand-made rows, its pause, its conditions and the ends that were shown."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from app.controls import pause, resume
from app.core.spread import Elsewhere
from app.ledger.measures import add
from app.ledger.orders import Order, reopen_run
from app.ledger.snapshots import Snapshot, record
from tests.api.home import Home
from tests.cli.conftest import Longwatch
from tests.cli.past import WHOLE_S, Course


@pytest.fixture
def course(home: Home) -> Course:
    return Course(home)


def test_a_finished_run_is_told_whole(longwatch: Longwatch, course: Course, tmp_path: Path) -> None:
    course.write()
    course.finish()
    drawing = tmp_path / "night.svg"
    told = longwatch("report", "night", "--svg", str(drawing))
    assert (told.code, told.error) == (0, "")
    lines = told.out.splitlines()
    assert lines[0].startswith('run 1 "night" finished ')
    assert "33m 20s active, 10m paused" in lines[1]
    assert "0.5 tok/s mean of the active time, 0.8 tok/s best five minutes" in lines[2]
    assert "1k kept, 0 wasted" in lines[3]
    assert "20 ok" in lines[4]
    (run,) = [line for line in lines if line.startswith("  the run ")]
    assert run.count("+25 %") == 6
    assert run.split()[2:4] == ["–", "+25"]  # nothing was shown at 1 %
    assert " 25.0 % " in run
    assert "100.0 %" in run
    (old,) = [line for line in lines if line.startswith("  B2_code")]
    assert old.count("–") == 10
    assert any("●" in line for line in lines)
    (held,) = [line for line in lines if line.startswith("  stalled B2_code: ")]
    assert held.endswith(", 2m: 64 requests hang")
    assert held.partition(" to ")[2].partition(",")[0].count(":") == 2  # seconds at both ends
    assert lines[-1] == f"Drawn into {drawing}"
    ElementTree.fromstring(drawing.read_text())  # noqa: S314 - our own


def test_what_was_adopted_is_in_no_mean_speed(
    longwatch: Longwatch, course: Course, home: Home
) -> None:
    course.write()
    course.finish()
    before = json.loads(longwatch("report", "--json", "night").out)
    partition = home.partition("B1_chat")
    n_adopted = partition.tokens.received // 2
    with home.ledger.write() as connection:
        add(connection, partition.id, [(Elsewhere.ADOPTED, n_adopted)], 1)

    told = json.loads(longwatch("report", "--json", "night").out)

    less = before["mean_tokens_per_s"] - told["mean_tokens_per_s"]
    assert less == pytest.approx(n_adopted / told["active_s"])
    old, new = (each["partitions"][0]["mean_tokens_per_s"] for each in (before, told))
    assert new == pytest.approx(old / 2)


def test_json_has_the_same_with_ratios(longwatch: Longwatch, course: Course) -> None:
    course.write(factor=0.5)
    course.finish()
    told = json.loads(longwatch("report", "--json", "night").out)
    assert told["active_s"] == WHOLE_S
    assert (told["paused_s"], told["unserved_s"]) == (600, 0)
    marks = {each["work_ratio"]: each["error_ratio"] for each in told["verdict"]["marks"]}
    assert marks[0.01] is None
    assert marks[0.5] == pytest.approx(-0.5)
    assert told["verdict"]["range_held_ratio"] < 0.05
    first, second = told["partitions"]
    assert first["verdict"]["marks"][4]["error_ratio"] == pytest.approx(-0.5)
    assert second["verdict"] is None
    assert told["conditions"][0]["partition"] == "B2_code"


def test_a_run_that_goes_on_has_no_end_but_its_finished_partitions_do(
    longwatch: Longwatch, course: Course
) -> None:
    course.write()
    home = course.home
    home.keep("B1_chat", 10, tokens=50)
    with home.ledger.write() as connection:
        connection.exec_driver_sql(
            "UPDATE partition SET sealed_at_ms = ? WHERE name = 'B1_chat'",
            (int(course.end.timestamp() * 1000),),
        )
    told = longwatch("report")
    assert told.code == 0
    assert "The run is running: it has no end yet" in told.out
    assert "Not finished: B2_code" in told.out
    (first,) = [line for line in told.out.splitlines() if line.startswith("  B1_chat")]
    assert "+25 %" in first


def test_prg_05_a_paused_partition_and_a_run_that_was_opened_again(
    longwatch: Longwatch, course: Course
) -> None:
    """A partition rests alone; what was shown before the first end is not held against the next."""
    home = course.home
    names = ("B1_chat",)
    pause(home.ledger, home.run, names, who="operator", now=course.at(100))
    resume(home.ledger, home.run, names, who="operator", now=course.at(400))
    course.finish()
    order = Order(run_id=home.run_id, who="operator", now=course.end + timedelta(seconds=50))
    told = json.loads(longwatch("report", "--json").out)
    chat, code = told["partitions"]
    assert (chat["paused_s"], code["paused_s"], told["paused_s"]) == (300, 0, 0)
    with home.ledger.write() as connection:
        connection.exec_driver_sql(
            "UPDATE partition SET sealed_at_ms = NULL, n_pending = 1 WHERE name = 'B2_code'"
        )
    assert reopen_run(home.ledger, order)
    told = json.loads(longwatch("report", "--json").out)
    assert told["state"] == "running"
    assert told["ended_at"] is None
    assert datetime.fromisoformat(told["begin"]) == course.begin
    assert datetime.fromisoformat(told["opened_at"]) - course.end == timedelta(seconds=50)
    assert (told["finished_s"], told["unserved_s"]) == (50, 0)
    assert [each["paused_s"] for each in told["partitions"]] == [300, 0]


def test_a_run_without_rows_is_told_as_such(longwatch: Longwatch, home: Home) -> None:
    told = longwatch("report", "night")
    assert told.code == 0
    assert "No figures are stored of it." in told.out
    assert "No condition held." in told.out


def test_time_without_a_service_is_no_active_time(longwatch: Longwatch, home: Home) -> None:
    begin_ms = int(home.run.created_at.timestamp() * 1000)
    record(
        home.ledger,
        [
            Snapshot(
                run_id=home.run_id,
                at_ms=begin_ms + 1_000 * second,
                figures_json=orjson.dumps(
                    {"session": session, "tokens": {"received": second}, "partitions": {}}
                ).decode(),
            )
            for session, second in ((1, 0), (1, 10), (2, 110), (2, 120))
        ],
    )
    told = json.loads(longwatch("report", "--json").out)
    assert told["n_rows"] == 4
    assert (told["active_s"], told["paused_s"]) == (pytest.approx(20, abs=0.1), 0)
    assert told["unserved_s"] == pytest.approx(100, abs=0.1)


def test_a_drawing_that_cannot_be_written_is_one_message(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    told = longwatch("report", "night", "--svg", str(tmp_path / "no" / "such.svg"))
    assert told.code == 1
    assert "such.svg" in told.error
    assert "Mend the cause and draw it again, or name another file with --svg" in told.error
