"""Cases srv-02, srv-16 and srv-17: a server that is gone, that is strict, or that is full."""

import asyncio
from pathlib import Path

from app.core.rids import parse_rid
from app.events import ServerLost
from app.simulator.server import SimulatorThread
from tests.cases.settings import calls, stage_of
from tests.waiting import come_back, cutting_port, die

DOWN_S = 1.5


async def test_srv_02_server_is_killed_and_comes_back_minutes_later(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """Scaled: down for 1.5 s instead of 60, so at most 8 connects, not 20: gaps grow as they do."""
    simulator.script({"*": ["ok delay=0.25"]})
    rows = [f"w{n}" for n in range(40)]
    stage = stage_of(tmp_path, simulator, rows, concurrency=4, max_attempts=3)

    async with stage.shift() as shift:
        await shift.until(lambda: stage.partition().counts.ok >= 8, "eight answers")
        await shift.until(lambda: simulator.stats.in_flight == 4, "four in flight")
        await die(simulator)
        ended = asyncio.get_running_loop().time()
        was_in_flight = [e.row for e in simulator.stats.requests() if e.outcome == "disconnect"]
        await shift.until(lambda: shift.heard(ServerLost), "the loss of the server")
        async with cutting_port(simulator.port) as came:
            await shift.until(
                lambda: stage.worker_row(shift.id).state == "waiting", "waiting for server"
            )
            since = stage.worker_row(shift.id).waiting_since
            await shift.until(
                lambda: asyncio.get_running_loop().time() > ended + DOWN_S, "the time to be over"
            )
        await come_back(simulator)
        await shift.until(lambda: stage.partition().is_over, "the end")

    assert since is not None
    assert 1 <= len(came) <= 8
    assert len(shift.heard(ServerLost)) == 1
    assert stage.partition().counts.ok == 40
    assert len(was_in_flight) == 4
    assert sorted(calls(simulator).items()) == sorted(
        (row, 2 if row in was_in_flight else 1) for row in rows
    )
    assert {row["charged"] for row in stage.rows().values()} == {0}
    stage.assert_consistent()


async def test_srv_16_second_try_is_refused_as_a_duplicate_request_id(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """Both rows of the case have the id "same"; ours are told apart, for no request names them."""
    simulator.script({"*": "reject with 400 any rid seen before", "@@503": [BUSY, "ok"]})
    rows = ["same-1 @@503", "same-2 @@503"]
    stage = stage_of(tmp_path, simulator, rows, max_attempts=3)

    await stage.work()

    assert stage.states() == {"same-1": "ok", "same-2": "ok"}
    assert simulator.stats.duplicate_rids == 0
    sent = [entry.rid for entry in simulator.stats.requests()]
    assert len(sent) == 4
    for rid in sent:
        parts = parse_rid(rid)
        assert parts is not None
        assert (parts.run_id, parts.partition_id) == (stage.run_id, stage.partition_id)
        assert "same" not in rid
    assert {parse_rid(rid).attempt for rid in sent} == {1, 2}  # type: ignore[union-attr]  # as above
    stage.assert_consistent()


BUSY = {"json": [503, {}]}
RETRY_AFTER_S = 0.8


async def test_srv_17_queue_full_503_or_429(simulator: SimulatorThread, tmp_path: Path) -> None:
    """Scaled: Retry-After is 0.8 s. Ours go to one row each, so all ten rows see all answers."""
    asked = {"json": [503, {}], "headers": {"Retry-After": str(RETRY_AFTER_S)}}
    simulator.script({"@@full": [asked, {"json": [429, {}]}, BUSY, BUSY, "ok"]})
    rows = [f"b{n} @@full" for n in range(10)]
    stage = stage_of(tmp_path, simulator, rows, max_attempts=2, concurrency=10)

    async with stage.shift() as shift:
        link = shift.links[0]
        await shift.until(lambda: link.effective_limit < link.limit, "a lower concurrency")
        await shift.until(lambda: stage.partition().is_over, "the end")

    counts = stage.partition().counts
    assert (counts.ok, counts.failed) == (10, 0)
    for row in rows:
        first, second = simulator.stats.requests(row)[:2]
        assert first.ended_at is not None
        assert second.received_at - first.ended_at >= RETRY_AFTER_S
    assert {row["charged"] for row in stage.rows().values()} == {0}
    assert set(calls(simulator).values()) == {5}
    stage.assert_consistent()
