"""What a limit would mean, said while it is typed; and what rows say of each state."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.core.conditions import ConditionKind
from app.core.estimate import Unknown
from app.core.states import RunState
from app.errors import InputError
from app.figures import PartitionFigures
from app.web.draft import Draft
from app.web.gallery.invented import (
    BUDGET_USED,
    BUDGETED,
    DRAINING,
    FINISHED,
    LEFT,
    NOW,
    PARTITION,
    PAUSED,
    RUN,
    SERVER,
    condition,
    numbered,
)
from app.web.head import Verdict, banner, signals, verdict
from app.web.meanings import would_mean
from app.web.rendering import draw
from app.web.row_words import asked, in_flight, left_cells, silent_since
from app.web.standing import standing
from app.web.typed_limits import in_full

YOUNG = replace(PARTITION, counts=replace(PARTITION.counts, ok=3, truncated=0))


@pytest.mark.parametrize(
    ("kind", "typed", "now", "said"),
    [
        ("budget", "6M", PARTITION, "already 6.29M made; nothing new would begin"),
        ("budget", "10M", PARTITION, "ends at about 67 % of the samples; saves ≈ 24m 4s"),
        ("budget", "1G", PARTITION, "room for all 10,276 samples"),
        ("budget", None, BUDGETED, "room for all 10,276 samples; adds ≈ 24m 4s"),
        ("budget", "10M", YOUNG, "too few answers have ended to say what it would mean"),
        ("goal", "4000", PARTITION, "already 4,212 answers; nothing new would begin"),
        ("goal", "20000", PARTITION, "only 10,276 samples can be made; all of them would be"),
        ("goal", "5000", PARTITION, "788 answers to go; saves ≈ 39m 1s"),
        ("deadline", "+1h", PARTITION, "pauses in 1h, at about 69 %"),
        ("deadline", "+6h", PARTITION, "pauses in 6h; its work is likely done before"),
        ("deadline", None, PARTITION, "goes on until its work is done"),
        ("deadline", "+1h", RUN, "stops in 1h, at about 64 %"),
    ],
)
def test_a_limit_is_weighed(kind: str, typed: str | None, now: PartitionFigures, said: str) -> None:
    assert would_mean(kind, typed, now, NOW) == said


@pytest.mark.parametrize(
    ("kind", "typed"), [("budget", "12x"), ("goal", "7k"), ("deadline", "soon")]
)
def test_what_is_no_limit_is_told(kind: str, typed: str) -> None:
    with pytest.raises(InputError, match=typed):
        would_mean(kind, typed, PARTITION, NOW)


def left(partition: PartitionFigures, *others: PartitionFigures) -> tuple[str, str]:
    partitions = numbered(*others, partition)
    run = replace(RUN, partitions=partitions)
    return left_cells(run, partitions[-1], standing(run, partitions[-1]))


def test_each_state_says_what_is_left() -> None:
    waiting = replace(PARTITION, n_in_flight=0, concurrency_requests=None)
    waiting = replace(waiting, state_since=NOW - timedelta(hours=1))
    assert left(waiting, PARTITION) == ("–", "starts after B1_part")
    assert left(waiting, PARTITION, waiting) == ("–", "starts after B2_part")
    assert left(waiting, PAUSED) == ("2h 5m", "1h 50m – 2h 25m")
    assert left(replace(waiting, class_name="long"), PARTITION) == ("2h 5m", "1h 50m – 2h 25m")
    assert left(BUDGET_USED) == ("+3.71M", "tokens to finish, about")
    assert left(DRAINING) == ("–", "9 requests to finish")
    worked = replace(PAUSED, time_left=Unknown(why="paused", work_s=15_000))
    assert left(worked) == ("4h 10m of work", "")
    assert left(FINISHED) == ("done", "")


def test_silence_has_its_moment() -> None:
    silent = replace(PARTITION, speed_tokens_per_s=0.0, time_left=Unknown(why="no tokens"))
    assert silent_since(RUN, silent, "–").startswith("no token since ")
    assert silent_since(RUN, silent, "2h") == ""
    assert silent_since(RUN, replace(silent, last_token_at=None), "–") == ""


def test_what_is_asked_and_what_is_in_flight() -> None:
    own = replace(PARTITION, own_concurrency=96, concurrency_requests=96)
    assert in_flight(RUN, replace(own, n_in_flight=72)) == "72 of 96 in flight"
    assert in_flight(RUN, replace(own, n_in_flight=120)) == "120 in flight, drains to 96"
    assert in_flight(RUN, replace(own, n_in_flight=96)) == "96 in flight"
    many = replace(RUN, partitions=numbered(*[replace(PARTITION, concurrency_requests=128)] * 4))
    assert asked(many) == "512 asked, server runs 256: 182 wait"
    assert asked(replace(many, servers=(replace(SERVER, max_running_requests=None),))) == ""
    assert asked(replace(RUN, partitions=numbered(PARTITION))) == ""


def test_a_server_that_is_away_says_who_waits_and_lets_all_be_paused() -> None:
    run = replace(RUN, conditions=(condition(ConditionKind.WAITING_FOR_SERVER),))
    draft = Draft(NOW)
    block = banner(draft, run)
    said = draft.sheet(block, "").texts["ban-0"]
    n = run.counts.running
    assert said.endswith(f" {n} requests wait to be sent again. It is tried again all the time.")
    assert block.about == (("waiting for server", False, "/runs/7/pause"),)
    with_orders_below = banner(Draft(NOW), run, has_orders=False)
    assert with_orders_below.about == (("waiting for server", False, ""),)


def test_how_many_go_on_is_said() -> None:
    run = replace(RUN, state=RunState.PAUSED, time_left=LEFT)
    about = verdict(Draft(NOW), run).about
    assert isinstance(about, Verdict)
    assert (about.n_resumed, about.n_also) == (3, 2)


def test_a_plus_adds_to_what_there_is() -> None:
    assert in_full("budget", "+2M", 10_000_000) == "12000000"
    assert in_full("goal", "+500", 7_000) == "7500"
    assert in_full("budget", "12M", None) == "12M"
    assert in_full("deadline", "+6h", None) == "+6h"
    with pytest.raises(InputError, match="there is no budget now"):
        in_full("budget", "+2M", None)
    with pytest.raises(InputError, match="not a number of tokens"):
        in_full("budget", "+x", 1)


@pytest.mark.parametrize(
    ("state", "n_at_rest"), [(RunState.RUNNING, 0), (RunState.PAUSED, 1), (RunState.FINISHED, 2)]
)
def test_a_signal_that_nothing_is_heard_of_is_quiet(state: RunState, n_at_rest: int) -> None:
    draft = Draft(NOW)
    block = signals(draft, replace(RUN, state=state), "Overview")
    assert draw(block, draft.sheet(block, "")).count('class="rest"') == n_at_rest
