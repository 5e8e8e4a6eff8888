"""`report` of a run, or a partition, that had ended and was opened again."""

import json
from datetime import timedelta

import pytest

from app.ledger.limits import set_goal
from app.ledger.orders import Order
from app.ledger.snapshots import record
from tests.api.home import Home
from tests.cli.conftest import Longwatch
from tests.cli.past import EVERY_S, WHOLE_S, Course, finish_again, reopen, row


@pytest.fixture
def course(home: Home) -> Course:
    return Course(home)


def test_a_run_that_was_opened_again_and_has_not_begun_keeps_its_past(
    longwatch: Longwatch, course: Course
) -> None:
    course.write(with_both=True)
    course.finish()
    opened_at = reopen(course)
    told = longwatch("report")
    lines = told.out.splitlines()
    assert "33m 20s active, 10m paused, 50 s finished before it was reopened" in lines[1]
    assert f"since {course.begin.astimezone():%F %T}" in lines[1]
    assert "0.5 tok/s mean" in lines[2]
    assert "No figures are stored" not in told.out
    (run,) = [line for line in lines if line.startswith("  the run  ")]
    assert run.count("+25 %") == 6
    for name in course.home.names:
        (partition,) = [line for line in lines if line.startswith(f"  {name}")]
        assert partition.count("+25 %") == 7
    assert (
        f"  The run is running: since it was reopened at {opened_at.astimezone():%F %T} it has no"
        " end; errors are of what was shown before the end it had then."
    ) in lines
    assert "  Not finished: B2_code" in lines


def test_a_short_last_stretch_takes_no_errors_away(longwatch: Longwatch, course: Course) -> None:
    """20 s for 500 tokens more, 1,000 s after the end; another service began them.

    The first service lived until the end that it wrote, ten seconds after its last row.
    """
    course.write(until_s=WHOLE_S - EVERY_S)
    course.finish()
    opened_at = reopen(course, after_s=1_000)
    record(
        course.home.ledger,
        [
            row(course, opened_at + timedelta(seconds=9), 1_450, left=22, session=2),
            row(course, opened_at + timedelta(seconds=10), 1_460, left=20, session=2),
        ],
    )
    seen_late_s = 9
    open_still = json.loads(longwatch("report", "--json").out)
    assert open_still["verdict"]["n_ends"] == 1
    assert open_still["verdict"]["marks"][4]["error_ratio"] == pytest.approx(0.25)
    finish_again(course, opened_at + timedelta(seconds=20))
    told = json.loads(longwatch("report", "--json").out)
    assert told["active_s"] == pytest.approx(WHOLE_S + 20 - seen_late_s)
    assert (told["paused_s"], told["finished_s"]) == (600, 1_000)
    assert told["unserved_s"] == pytest.approx(seen_late_s)
    assert told["mean_tokens_per_s"] == pytest.approx(1_500 / (WHOLE_S + 11))
    verdict = told["verdict"]
    assert verdict["n_ends"] == 2
    assert verdict["n_shown"] == open_still["verdict"]["n_shown"] + 2
    assert verdict["median_error_ratio_from_5_percent"] == pytest.approx(0.25, abs=0.01)
    errors = {each["work_ratio"]: each["error_ratio"] for each in verdict["marks"]}
    assert errors[0.5] == pytest.approx(0.25, abs=0.01)
    # 90 % of all work lies in the last stretch: 22 s were shown, 11 were left
    assert errors[0.9] == pytest.approx(1.0)
    chat, code = told["partitions"]
    assert chat["verdict"]["n_ends"] == 1
    assert chat["active_s"] == WHOLE_S
    assert code["verdict"]["n_ends"] == 2
    assert code["active_s"] == pytest.approx(WHOLE_S + 11)


def test_a_partition_that_was_opened_again_alone_keeps_its_first_end(
    longwatch: Longwatch, course: Course
) -> None:
    """B2_code is over after 400 s; at 600 s its goal is raised, and it goes on with the run."""
    home = course.home
    truth = {second: 400 - second for second in range(0, 400, 10)}
    moments = [(second, 500 + second, 2 * left) for second, left in truth.items()]
    moments += [(second, 900, 0) for second in range(400, 600, 10)]
    moments += [(second, 300 + second, 9_999) for second in range(610, 700, 10)]
    record(
        home.ledger,
        [row(course, course.at(second), n, left=left) for second, n, left in moments],
    )
    raised = Order(run_id=home.run_id, who="ops", now=course.at(600))
    set_goal(home.ledger, raised, "B2_code", 10)
    told = json.loads(longwatch("report", "--json").out)
    assert told["verdict"] is None
    code = told["partitions"][1]
    assert code["ended_at"] is None
    assert code["verdict"]["n_shown"] == len(truth)
    assert code["verdict"]["median_error_ratio_from_5_percent"] == pytest.approx(1.0)
    # the 200 s in which it was over are no time at work
    assert code["active_s"] == pytest.approx(490)
