"""Charts beyond the speed of a run: of one partition, concurrency as steps, servers away."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from app.controls import pause
from app.core.loads import ServerLoad
from app.core.series import Chart
from app.ledger.limits import set_concurrency
from app.ledger.orders import Order
from app.ledger.snapshots import between
from app.recorder.rows import read_rows
from tests.recorder.conftest import Desk


def work(desk: Desk) -> None:
    """Record concurrency that changes, a pause, and a server that is late once and goes once."""
    home, recorder, url = desk.home, desk.recorder(), desk.home.server_url

    def ask(n: int) -> None:
        order = Order(run_id=home.run_id, who="anna", now=desk.hands.now())
        set_concurrency(home.ledger, order, "B1_chat", n)

    def away(seconds: int) -> None:
        desk.loads[url] = ServerLoad(url=url, away_since=desk.hands.now())
        desk.run(recorder, seconds)
        desk.loads[url] = ServerLoad(url=url, at=desk.hands.now(), tokens_per_s=77.0)

    ask(64)
    away(3)
    desk.run(recorder, 7, tokens=50)
    ask(96)
    away(14)
    desk.run(recorder, 7, tokens=50)
    pause(home.ledger, home.run, ["B1_chat"], who="anna", now=desk.hands.now())
    desk.run(recorder, 6)
    recorder.close()


def seen(values: tuple[float | None, ...]) -> list[float]:
    """Return the values without repetition, in the order of time."""
    known = [value for value in values if value is not None]
    return [value for n, value in enumerate(known) if not n or known[n - 1] != value]


def highest(chart: Chart) -> float:
    return max(value or 0.0 for value in chart.own_tokens_per_s)


def test_a_service_that_begins_draws_what_an_earlier_one_recorded(desk: Desk) -> None:
    work(desk)
    later = desk.recorder()
    desk.stack.callback(later.close)

    whole = later.chart(desk.home.run_id, None, 40)
    own = later.chart(desk.home.run_id, None, 40, desk.home.partition("B1_chat").id)

    assert seen(own.concurrency_requests) == [64, 96, 0]
    assert highest(own) == pytest.approx(50.0, rel=0.05)
    assert highest(whole) == pytest.approx(100.0, rel=0.05)
    assert set(own.server_tokens_per_s) == {None}
    assert 77.0 in whole.server_tokens_per_s
    ((begin, end),) = whole.aways  # the late answer is none
    assert end - begin == pytest.approx(timedelta(seconds=14), abs=timedelta(seconds=4))


def test_rows_of_before_tell_neither_and_stay_readable(desk: Desk) -> None:
    recorder = desk.recorder()
    desk.run(recorder, 3, tokens=50)
    recorder.close()
    new = between(desk.home.ledger, desk.home.run_id, 0, 2**62)[-1]
    value = orjson.loads(new.figures_json)
    del value["away"]
    value["partitions"] = {name: values[:1] for name, values in value["partitions"].items()}

    (old,) = read_rows([replace(new, figures_json=orjson.dumps(value).decode())])

    assert (old.is_away, old.concurrency) == (False, {})
    assert old.by_partition == read_rows([new])[0].by_partition
