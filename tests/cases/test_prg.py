"""Cases prg-02 and prg-06: figures that add up at every moment, and a budget that is kept."""

from pathlib import Path

from app.core.views import PartitionView
from app.ledger.counters import recount
from app.ledger.limits import set_partition_budget
from app.ledger.orders import Order
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import encode_chat
from tests.cases.settings import calls, stage_of

BUDGET_TOKENS = 2_000
ANSWER_TOKENS, CAP_TOKENS = 100, 400


async def test_prg_02_more_than_100_percent_or_a_negative_eta(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """The identity, polled; percent and ETA are derived from these counters by `core`.

    50 rows are added to the partition in mid-run, where the case adds a partition.
    """
    simulator.script(
        {"@@flaky": [{"json": [500, {}]}, "cut mid_body", "ok"], "*": ["ok delay=0.1"]}
    )
    texts = [f"a{n} @@flaky" if n % 5 == 0 else f"a{n}" for n in range(100)]
    stage = stage_of(tmp_path, simulator, texts[:50], max_attempts=4, concurrency=20)
    polls: list[PartitionView] = []

    def poll() -> PartitionView:
        assert recount(stage.ledger, stage.partition_id) == []
        polls.append(stage.partition())
        return polls[-1]

    async with stage.shift() as shift:
        await shift.until(lambda: poll().counts.ok >= 10, "ten answers")
        more = texts[50:]
        ids = [encode_chat([{"role": "user", "content": text}]) for text in more]
        stage.add_rows(more, ids, [text.split()[0] for text in more])
        await shift.until(lambda: poll().is_over, "the end")

    assert len(polls) > 20
    assert {view.counts.total for view in polls} <= {50, 100}
    assert all(min(vars_of(view)) >= 0 for view in polls)
    assert stage.partition().counts.ok == 100
    assert {n for row, n in calls(simulator).items() if int(row[1:]) % 5 == 0} == {3}
    stage.assert_consistent()


def vars_of(view: PartitionView) -> list[int]:
    counts = view.counts
    return [counts.pending, counts.running, counts.kept, counts.failed, counts.rejected]


def most_committed_tokens(simulator: SimulatorThread) -> int:
    """Return the most that was used and reserved at any moment at which a request came.

    As the server saw it: what had ended counts as long as it was, what runs as long as it may be.
    """
    log = simulator.stats.requests()
    most = 0
    for entry in log:
        before = [e for e in log if e.received_at <= entry.received_at]
        ended = [e for e in before if (e.ended_at or entry.received_at) < entry.received_at]
        running = len(before) - len(ended)
        most = max(most, len(ended) * ANSWER_TOKENS + running * CAP_TOKENS)
    return most


async def test_prg_06_token_budget_overshoots_because_many_are_in_flight(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": [f"ok with {ANSWER_TOKENS} output tokens, delay=0.1"]})
    stage = stage_of(
        tmp_path,
        simulator,
        [f"a{n}" for n in range(100)],
        concurrency=8,
        max_new_tokens=CAP_TOKENS,
        output_token_budget=BUDGET_TOKENS,
    )

    await stage.work()

    view = stage.partition()
    assert most_committed_tokens(simulator) <= BUDGET_TOKENS
    assert 1_600 <= view.tokens.used <= BUDGET_TOKENS
    assert view.budget_reached
    assert view.counts.pending == 100 - view.counts.ok > 0
    stage.assert_consistent()

    order = Order(run_id=stage.run_id, who="operator", now=stage.clock.now())
    set_partition_budget(stage.ledger, order, "p", 2 * BUDGET_TOKENS)
    await stage.work()

    again = stage.partition()
    assert again.tokens.used > 2 * BUDGET_TOKENS - CAP_TOKENS
    assert again.tokens.used <= 2 * BUDGET_TOKENS
    stage.assert_consistent()
