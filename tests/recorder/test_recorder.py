"""One look for everybody: figures that are shared, rows that are stored, a history that goes on."""

import json
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import event

from app.controls import pause, stop
from app.core.loads import ServerLoad
from app.core.spec import to_json
from app.core.states import PartitionState, RunState
from app.core.types import RunId
from app.errors import NotFoundError
from app.ledger import runs
from app.ledger.db import Ledger
from app.recorder import Recorder
from tests.recorder.conftest import Desk


@pytest.fixture
def recorder(desk: Desk) -> Recorder:
    recorder = desk.recorder()
    desk.stack.callback(recorder.close)
    return recorder


def statements_of(recorder: Recorder) -> list[str]:
    """Return the list to which each statement of the recorder is added from now on."""
    found: list[str] = []
    engine = recorder._ledger._engine
    event.listen(engine, "before_cursor_execute", lambda *details: found.append(str(details[2])))
    return found


def test_who_looks_on_causes_no_query(desk: Desk, recorder: Recorder) -> None:
    desk.run(recorder, 3, tokens=50)
    statements = statements_of(recorder)

    seen = [recorder.figures(desk.home.run_id) for _ in range(100)]
    recorder.chart(desk.home.run_id, 900.0, 450)
    recorder.live()

    assert all(each is seen[0] for each in seen)
    assert statements == []


def test_each_look_has_a_number_and_newer_figures(desk: Desk, recorder: Recorder) -> None:
    desk.run(recorder, 1)
    first, seq = recorder.figures(desk.home.run_id), recorder.seq
    desk.run(recorder, 1, tokens=50)

    assert recorder.seq == seq + 1
    assert recorder.figures(desk.home.run_id).counts.kept == first.counts.kept + 2


def test_figures_are_collected_anew_when_old_or_distrusted(desk: Desk, recorder: Recorder) -> None:
    desk.run(recorder, 1)
    pause(desk.home.ledger, desk.home.run, ["B1_chat"], who="operator", now=desk.hands.now())
    assert recorder.figures(desk.home.run_id).partitions[0].state is PartitionState.ACTIVE
    recorder.distrust()
    assert recorder.figures(desk.home.run_id).partitions[0].state is PartitionState.PAUSED

    desk.hands.at_s += 2.6
    assert recorder.figures(desk.home.run_id).at == desk.hands.now()


def test_the_last_figures_stand_with_their_age_while_the_ledger_cannot_be_read(
    desk: Desk, recorder: Recorder
) -> None:
    desk.run(recorder, 1)
    last = recorder.figures(desk.home.run_id)
    desk.hands.at_s += 20.0
    recorder._ledger.close()
    away = desk.home.ledger.path.rename(desk.home.folder / "elsewhere")
    try:
        assert recorder.figures(desk.home.run_id) == last
        assert last.at == desk.hands.now() - timedelta(seconds=20)
    finally:
        away.rename(desk.home.ledger.path)


def test_an_unknown_run_is_not_found(recorder: Recorder) -> None:
    with pytest.raises(NotFoundError):
        recorder.figures(RunId(77))


def test_a_row_is_stored_each_few_seconds_with_the_estimate_that_was_shown(
    desk: Desk, recorder: Recorder
) -> None:
    desk.run(recorder, 20, tokens=50)

    rows = desk.rows()

    assert len(rows) == 10
    assert {later[0] - row[0] for row, later in pairwise(rows)} == {2_000}
    last = json.loads(rows[-1][1])
    shown = recorder.figures(desk.home.run_id)
    assert last["tokens"]["received"] > 0
    assert sum(last["samples"].values()) == 400
    assert last["left_s"][0] <= last["left_s"][1] <= last["left_s"][2]
    assert last["partitions"].keys() == {str(each.id) for each in shown.partitions}
    assert len(rows[-1][1]) < 1_500


def test_a_run_that_has_ended_gets_a_last_row_and_no_more(desk: Desk, recorder: Recorder) -> None:
    desk.run(recorder, 4, tokens=50)
    desk.home.leave()
    stop(desk.home.ledger, desk.home.run, who="operator", now=desk.hands.now(), service_lives=False)
    desk.run(recorder, 6)

    states = [json.loads(value)["state"] for _, value in desk.rows()]

    assert states[-1] == "stopped"
    assert states.count("stopped") == 1
    assert recorder.figures(desk.home.run_id).state is RunState.STOPPED
    assert recorder.live() == ()


def test_sparks_means_and_best_come_from_what_was_recorded(desk: Desk, recorder: Recorder) -> None:
    desk.run(recorder, 61)
    before = recorder.figures(desk.home.run_id)
    assert before.best_tokens_per_s is None
    assert before.mean_hour_tokens_per_s == 0.0

    desk.run(recorder, 100, tokens=50)
    desk.run(recorder, 200)
    after = recorder.figures(desk.home.run_id)

    assert after.best_tokens_per_s == pytest.approx(100 * 100 / 300, rel=0.02)
    assert after.mean_hour_tokens_per_s == pytest.approx(100 * 100 / 360, rel=0.02)
    spark = after.partitions[0].spark_tokens_per_s
    assert len(spark) == 60
    known = [each for each in spark if each is not None]
    assert 12 <= len(known) <= 14
    assert max(known) == pytest.approx(50.0, rel=0.02)
    assert known[-1] == 0.0


def test_a_restart_goes_on_with_the_history_and_leaves_a_gap(desk: Desk) -> None:
    first = desk.recorder()
    desk.run(first, 60, tokens=50)
    desk.run(first, 260)
    best = first.figures(desk.home.run_id).best_tokens_per_s
    assert best is not None
    first.close()
    desk.hands.at_s += 120.0

    second = desk.recorder()
    desk.stack.callback(second.close)
    desk.run(second, 30, tokens=20)

    figures = second.figures(desk.home.run_id)
    assert figures.best_tokens_per_s == pytest.approx(best, abs=0.01)
    covered_s = 319 + 29
    assert figures.mean_hour_tokens_per_s == pytest.approx(
        (60 * 100 + 30 * 40) / covered_s, rel=0.05
    )
    spark = figures.partitions[0].spark_tokens_per_s
    assert None in spark[-5:-1]
    assert spark[-1] == pytest.approx(20.0, rel=0.1)
    chart = second.chart(desk.home.run_id, None, 47)
    drawn = chart.own_tokens_per_s
    assert len(drawn) == 47
    assert drawn[3] == pytest.approx(100.0, rel=0.1)
    assert drawn[36:41].count(None) == 5
    assert drawn[-2] == pytest.approx(40.0, rel=0.1)


def test_a_chart_of_the_servers_own_count_has_no_figure_where_they_told_none(
    desk: Desk, recorder: Recorder
) -> None:
    desk.run(recorder, 20, tokens=50)
    url = desk.home.server_url
    desk.loads[url] = ServerLoad(url=url, at=desk.hands.now(), tokens_per_s=77.0)
    desk.run(recorder, 20, tokens=50)

    chart = recorder.chart(desk.home.run_id, 40.0, 4)

    told = chart.server_tokens_per_s
    assert told[0] is None
    assert 77.0 in told
    assert chart.end - chart.begin == timedelta(seconds=40)
    assert recorder.figures(desk.home.run_id).servers[0].tokens_per_s == 77.0


def test_a_server_that_moves_is_not_called_stalled(desk: Desk, recorder: Recorder) -> None:
    home, url = desk.home, desk.home.server_url
    spec = replace(home.spec("night"), stall_after_s=20.0)
    runs.set_identity(
        home.ledger, home.run_id, fingerprint_json="{}", gen_id="one", spec_json=to_json(spec)
    )
    home.beat("B1_chat", in_flight=4)
    desk.run(recorder, 25)
    assert [str(one.kind) for one in recorder.figures(home.run_id).conditions][:1] == ["stalled"]
    desk.loads[url] = ServerLoad(url=url, progressed_at=desk.hands.now())
    desk.run(recorder, 1)
    assert recorder.figures(home.run_id).conditions == ()
    assert [event for event, _ in desk.told()] == ["stalled", "stalled"]


def test_a_ledger_that_another_holds_stops_no_look_and_loses_no_row(
    desk: Desk, recorder: Recorder
) -> None:
    desk.run(recorder, 2)
    n_rows = len(desk.rows())
    other = Ledger(desk.home.ledger.path)
    with closing(other), other.write():
        desk.run(recorder, 2)
        assert recorder.figures(desk.home.run_id).at == desk.hands.now()
        assert len(desk.rows()) == n_rows

    desk.run(recorder, 1)
    assert len(desk.rows()) == n_rows + 1
    assert desk.told() == []
