"""A look of the recorder, and its keeping, read no more of a large ledger than of a small one.

Every statement of whole ticks is explained: none walks over a table that grows with the samples,
with their attempts, or with the days that a run lasts.
"""

import pytest

from app.recorder import Recorder
from tests.api.home import Home
from tests.ledger.plans import recorded, scans
from tests.recorder.conftest import Desk

GROWING = ("sample", "checkpoint", "attempt", "snapshot", "activity")


@pytest.fixture
def recorder(desk: Desk) -> Recorder:
    recorder = desk.recorder()
    desk.stack.callback(recorder.close)
    return recorder


def fill(home: Home) -> None:
    """Let some samples be kept, some failed, some running; the rest waits."""
    home.keep("B1_chat", 40)
    home.fail("B1_chat", 10)
    home.claim("B1_chat", 4)
    home.keep("B2_code", 60)


@pytest.mark.parametrize("table", GROWING)
def test_no_tick_walks_over_a_table_that_grows(desk: Desk, recorder: Recorder, table: str) -> None:
    fill(desk.home)
    with recorded(recorder._ledger) as asked:
        desk.run(recorder, 8, tokens=50)  # with rows that are due, from the first look on
        recorder.chart(desk.home.run_id, None, 60)
        recorder.chart(desk.home.run_id, 86_400.0, 60, desk.home.partition("B1_chat").id)
    assert any("FROM sample" in each.statement for each in asked)
    assert any("INSERT INTO snapshot" in each.statement for each in asked)
    assert scans(desk.home.ledger, asked, table) == {}


def test_a_tick_that_begins_again_walks_over_nothing(desk: Desk) -> None:
    """A new service takes up what an earlier one left: its rows, and what was told."""
    fill(desk.home)
    first = desk.recorder()
    desk.run(first, 6, tokens=50)
    first.close()
    second = desk.recorder()
    desk.stack.callback(second.close)
    with recorded(second._ledger) as asked:
        desk.run(second, 3)
    assert any("FROM snapshot" in each.statement for each in asked)
    for table in GROWING:
        assert scans(desk.home.ledger, asked, table) == {}
