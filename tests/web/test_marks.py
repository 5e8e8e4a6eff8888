"""Marks on a chart: what belongs together is one, the gravest and the newest are kept."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.core.types import PartitionId
from app.ledger.activity import Activity
from app.poller.happening import BACK, LOST
from app.web.gallery.invented import HOSTILE, NOW
from app.web.marks import EVENTS, MOST_MARKS, Mark, marks

NAMES = {PartitionId(1): "B1", PartitionId(2): "B2"}
URL = "http://localhost:30000"


def happened(
    n: int, event: str, detail: str = "", *, who: str = "system", partition: int | None = None
) -> Activity:
    """Return the entry of a minute `n` after the beginning."""
    return Activity(
        id=n,
        at=NOW + timedelta(minutes=n),
        who=who,
        event=event,
        detail=detail,
        partition_id=None if partition is None else PartitionId(partition),
    )


def over_of(entry: Activity) -> Activity:
    return replace(entry, id=entry.id + 1, detail="over after 4 min: the run is finished")


def says(*entries: Activity, partition: int | None = None) -> list[str]:
    wanted = None if partition is None else PartitionId(partition)
    return [mark.says for mark in marks(entries, NAMES, wanted)]


def test_a_server_that_was_away_is_one_mark_where_it_went() -> None:
    lost = happened(1, LOST, f"{URL}: connection refused")
    back = happened(49, BACK, f"{URL}: away for 48m, started anew")

    found = marks([lost, back], NAMES)

    assert [(mark.entry_id, mark.at, mark.says) for mark in found] == [
        (1, lost.at, "server away for 48m, started anew")
    ]
    assert says(lost) == ["server away, not back yet"]
    assert says(back) == ["server back, away for 48m, started anew"]


def test_two_servers_are_not_taken_for_each_other() -> None:
    one, other = (happened(n, LOST, f"{URL}{n}: refused") for n in (1, 2))
    back = happened(9, BACK, f"{URL}2: away for 7m")
    assert says(one, other, back) == ["server away, not back yet", "server away for 7m"]


def test_a_condition_is_one_mark_that_tells_how_long_it_held() -> None:
    stalled = happened(1, "stalled", "No token came for 10 min.", partition=1)
    over = happened(15, "stalled", "over after 14 min", partition=1)

    assert says(stalled, over) == ["B1: stalled for 14 min"]
    assert says(stalled) == ["B1: stalled, not over yet"]
    assert says(over) == ["B1: no longer stalled, after 14 min"]
    reached = happened(1, "budget reached", "The budget of B1 is reached.", partition=1)
    assert says(reached) == says(reached, over_of(reached)) == ["B1: budget reached"]
    assert says(over_of(reached)) == []
    assert "waiting for server" not in EVENTS  # the server that is lost says so


def test_presses_of_one_button_soon_after_each_other_are_one_mark() -> None:
    steps = [
        happened(n, "concurrency", f"B1: {old} -> {old + 8}", who="anna (page)", partition=1)
        for n, old in ((1, 64), (2, 72), (3, 80))
    ]
    later = happened(30, "concurrency", "B1: 88 -> 40", who="anna (page)", partition=1)
    other = replace(steps[1], who="bert", id=4)

    assert says(*steps) == ["B1: concurrency 64 → 88, by anna (page)"]
    assert says(*steps, later) == [
        "B1: concurrency 64 → 88, by anna (page)",
        "B1: concurrency 88 → 40, by anna (page)",
    ]
    assert len(says(*steps, other)) == 2


@pytest.mark.parametrize(
    ("event", "detail", "expected"),
    [
        (
            "state",
            "B1: active -> paused (by its deadline)",
            "B1: active → paused (by its deadline)",
        ),
        ("budget", "run: none -> 12,000,000", "run: budget none → 12,000,000"),
        ("pause", "", "run paused"),
        (
            "server restarted",
            f"{URL}: it was started anew",
            f"server restarted {URL}: it was started anew",
        ),
    ],
)
def test_what_is_changed_is_said_as_the_activity_says_it(
    event: str, detail: str, expected: str
) -> None:
    assert event in EVENTS
    assert says(happened(1, event, detail)) == [expected]


def test_the_page_of_a_partition_has_its_own_marks_and_those_of_the_run() -> None:
    mine = happened(1, "concurrency", "B1: 8 -> 16", partition=1)
    others = happened(2, "concurrency", "B2: 8 -> 16", partition=2)
    of_run = happened(3, "pause")
    assert says(mine, others, of_run, partition=1) == ["B1: concurrency 8 → 16", "run paused"]


def test_of_many_the_gravest_then_the_newest_stay_in_the_order_of_time() -> None:
    stalled = happened(1, "stalled", "No token came.")
    changes = [
        happened(10 * n, "concurrency", f"B1: {n} -> {n + 1}", partition=1) for n in range(1, 30)
    ]

    found = marks([stalled, *changes], NAMES)

    assert len(found) == MOST_MARKS
    assert [mark.entry_id for mark in found] == [1, *range(220, 300, 10)]


def test_words_from_elsewhere_are_one_short_line() -> None:
    (found,) = marks([happened(1, "state", f"B1: a -> b\n{HOSTILE * 9}", partition=1)], NAMES)
    assert isinstance(found, Mark)
    assert "\n" not in found.says
    assert len(found.says) <= 110


def test_what_was_taken_back_at_once_is_no_mark() -> None:
    there = happened(1, "budget", "B1: none -> 12,000,000", who="anna (page)", partition=1)
    back = replace(there, id=2, detail="B1: 12,000,000 -> none")

    assert says(there, back) == []
