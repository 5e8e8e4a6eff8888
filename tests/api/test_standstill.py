"""Paused, empty and noticed partitions in the figures."""

from app.controls import pause, stop
from app.core.conditions import ConditionKind
from app.figures import Speedometer
from tests.api.home import Home
from tests.api.test_figures import Hands, look


def test_all_partitions_paused_is_a_condition_like_the_run_paused(home: Home) -> None:
    now = Hands().now()
    pause(home.ledger, home.run, ["B1_chat"], who="operator", now=now)
    assert look(home, Speedometer(), Hands()).conditions == ()
    pause(home.ledger, home.run, ["B2_code"], who="operator", now=now)
    (paused,) = look(home, Speedometer(), Hands()).conditions
    assert paused.kind is ConditionKind.ALL_PAUSED
    assert paused.sentence.endswith("longwatch resume night")


def test_a_workers_notice_is_a_remark_of_its_partition(home: Home) -> None:
    home.beat("B1_chat", notice="server queue full: 8 requests wait")
    figures = look(home, Speedometer(), Hands())
    assert "server queue full: 8 requests wait" in figures.partitions[0].remarks
    assert figures.partitions[1].remarks == ()
    assert look(home, None, Hands()).partitions[0].remarks == ()


def test_an_empty_partition_is_done(home: Home) -> None:
    empty = Home(home.folder.parent / "empty", n_samples=0)
    figures = look(empty, Speedometer(), Hands())
    assert [figures.percent, *(each.percent for each in figures.partitions)] == [100, 100, 100]
    empty.ledger.close()


def test_a_run_without_a_service_stands_still_since_its_workers_last_sign(home: Home) -> None:
    home.beat("B1_chat", lease_s=30.0)
    ahead = Hands(at_s=home.clock.now().timestamp() - Hands(at_s=0.0).now().timestamp() + 60.0)
    (unserved,) = look(home, None, ahead).conditions
    assert unserved.kind is ConditionKind.NOT_SERVED
    assert unserved.since < ahead.now()
    assert not look(home, None, ahead).is_served
    home.leave()
    (left,) = look(home, None, ahead).conditions
    assert left.since >= unserved.since


def test_a_stopped_run_needs_no_service(home: Home) -> None:
    stop(home.ledger, home.run, who="operator", now=home.clock.now(), service_lives=False)
    assert look(home, None, Hands()).conditions == ()
