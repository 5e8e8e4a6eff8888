"""The keeper of tokenizing tasks: begins them, ends them, pauses what cannot be tokenized."""

from app.core.states import PartitionState
from app.ledger import runs
from app.ledger.activity import Deed
from app.ledger.orders import Order, move_partitions
from app.tokenizing import TokenizingKeeper, TokenizingStopped
from tests.intake.desk import Desk, until, user


def keeper_of(desk: Desk) -> TokenizingKeeper:
    return TokenizingKeeper(desk.ledger, desk.settings, desk.clock, desk.events.append)


async def test_every_scanned_partition_of_a_running_run_is_tokenized(desk: Desk) -> None:
    for name in ("p", "q"):
        desk.write(name, [user(f"a{n}", "x") for n in range(30)])
    await desk.submit()
    keeper = keeper_of(desk)

    await keeper.look()
    await keeper.look()
    await until(
        lambda: all(desk.partition(name).intake == "tokenized" for name in ("p", "q")), "done"
    )
    await keeper.close()

    assert [desk.partition(name).n_tokenized for name in ("p", "q")] == [30, 30]
    # a start token and 30 each; before them the check: its start token, 60, the golden strings
    assert desk.simulator.stats.http_requests["/tokenize"] == 2 * 31 + 60 + 1 + 1


async def test_a_partition_that_cannot_be_tokenized_is_paused_with_the_reason(
    desk: Desk,
) -> None:
    path = desk.write("p", [user("a", "x")])
    await desk.submit()
    content = path.read_bytes()
    path.write_bytes(b"")
    keeper = keeper_of(desk)

    await keeper.look()
    await until(lambda: desk.partition().state is PartitionState.PAUSED, "paused")
    await keeper.look()

    assert "is not what was scanned: record 1 has changed" in desk.partition().reason
    assert [one for one in desk.events if isinstance(one, TokenizingStopped)]
    path.write_bytes(content)
    order = Order(run_id=desk.partition().run_id, who="operator", now=desk.clock.now())
    move_partitions(desk.ledger, order, ["p"], "resume")
    await keeper.look()
    await until(lambda: desk.partition().intake == "tokenized", "tokenized")
    await keeper.close()


async def test_a_paused_run_is_not_tokenized(desk: Desk) -> None:
    desk.write("p", [user(f"a{n}", "x") for n in range(30)])
    run = await desk.submit()
    desk.simulator.set(unavailable=True)
    keeper = keeper_of(desk)
    await keeper.look()
    await until(lambda: desk.events, "waiting for the server")
    deed = Deed(who="operator", event="pause", run_id=run.id)
    runs.move_run(desk.ledger, run.id, "pause", deed, desk.clock.now())

    await keeper.look()
    desk.simulator.set(unavailable=False)
    asked = dict(desk.simulator.stats.http_requests)
    await keeper.look()

    assert desk.simulator.stats.http_requests == asked
    assert desk.partition().intake == "scanned"
    await keeper.close()
