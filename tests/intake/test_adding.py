"""Adding partitions to a run that exists: what is checked, what is kept, what goes on."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import orjson
import pytest

from app.core.spec import ClassSpec, PartitionSpec, RunSpec, from_json
from app.core.states import PartitionState, RunState
from app.errors import ConflictError, InputError, LongwatchError
from app.ledger import runs
from app.ledger.activity import Deed, latest
from app.ledger.counters import recount
from app.ledger.limits import set_partition_budget
from app.ledger.orders import Order
from app.ledger.settings_of_runs import Growth, grow
from app.submission import Added, add_to_run
from app.supervisor import Supervisor
from app.supervisor.processes import Processes
from tests.intake.desk import Desk, user


class DiedError(Exception):
    """Stands for the end of the process."""


async def begin(desk: Desk, **changes: Any) -> None:
    """Submit a run of one partition, named in its words."""
    desk.write("p", [user("a", "x"), user("b", "y")])
    desk.own("p")
    desk.change(sampling={"temperature": 0.7}, **changes)
    await desk.run()


async def add(desk: Desk, spec: RunSpec | None = None) -> Added:
    (run,) = runs.list_runs(desk.ledger)
    desk.said.clear()
    return await add_to_run(
        desk.ledger,
        desk.settings,
        run.id,
        spec or replace(desk.spec, name="other words", partitions={}),
        who="operator",
        clock=desk.clock,
        say=desk.said.append,
    )


def everything(desk: Desk) -> list[object]:
    (run,) = runs.list_runs(desk.ledger)
    partitions = runs.partitions_of(desk.ledger, run.id)
    owner = (desk.output / ".longwatch.json").read_bytes()
    return [run, partitions, owner, latest(desk.ledger, run.id)]


async def move(desk: Desk, *events: str) -> None:
    (run,) = runs.list_runs(desk.ledger)
    for event in events:
        deed = Deed(who="operator", event=event, run_id=run.id)
        runs.move_run(desk.ledger, run.id, event, deed, desk.clock.now())


async def test_what_is_new_in_the_prompts_folder_is_added(desk: Desk) -> None:
    await begin(desk)
    before = desk.partition("p")
    desk.write("q", [user("a", "x")])

    added = await add(desk)

    assert added.names == ("q",)
    assert added.run.state is RunState.RUNNING
    assert desk.partition("p") == before
    assert "in this run already, and left as they are: p" in desk.said
    assert "new in this run: q" in desk.said
    done = await desk.tokenize("q")
    assert (done.n_tokenized, done.state, done.max_new_tokens) == (1, PartitionState.ACTIVE, 64)
    assert recount(desk.ledger, done.id) == []
    owner = orjson.loads((desk.output / ".longwatch.json").read_bytes())
    assert owner["runs"]["1"]["partitions"] == ["p", "q"]
    entries = [each for each in latest(desk.ledger, added.run.id) if each.who == "operator"]
    assert (entries[0].event, entries[0].detail) == ("partitions added", "q")


async def test_the_run_goes_on_with_its_own_words_and_with_the_new_ones(desk: Desk) -> None:
    await begin(desk)
    own_words = desk.spec
    desk.write("q", [user("a", "x")])
    desk.own("q", token_budget_tokens=500, max_samples=7)
    added = await add(desk, desk.spec)
    assert (desk.partition("q").token_budget, desk.partition("q").goal_samples) == (500, 7)

    desk.spec = own_words
    again = await desk.submit()
    assert again.gen_id == added.run.gen_id
    assert set(from_json(again.spec_json).partitions) == {"p", "q"}
    assert "also in this run, and going on as they were: q" in desk.said
    desk.own("q", token_budget_tokens=500, max_samples=7)
    assert set(from_json((await desk.submit()).spec_json).partitions) == {"p", "q"}
    assert (await add(desk, own_words)).names == ()


async def test_a_spec_that_makes_answers_otherwise_is_refused_with_the_list(desk: Desk) -> None:
    await begin(desk)
    path = desk.write("p", [user("a", "x"), user("b", "y"), user("c", "z")])
    desk.write("q", [user("a", "x")])
    before = everything(desk)
    spec = replace(
        desk.spec,
        partitions={},
        sampling={"temperature": 1.0},
        samples_per_prompt=2,
        classes={"long": ClassSpec(concurrency=8, max_new_tokens=32)},
    )

    with pytest.raises(ConflictError) as refusal:
        await add(desk, spec)

    told = str(refusal.value)
    assert "temperature 0.7 -> 1.0" in told
    assert "samples_per_prompt 1 -> 2" in told
    assert "max_new_tokens of p 64 -> 32" in told
    assert "the prompts of p changed" in told
    assert "--accept-changes" not in told
    assert everything(desk) == before
    path.unlink()


async def test_another_server_version_is_refused(desk: Desk) -> None:
    await begin(desk)
    desk.write("q", [user("a", "x")])
    desk.simulator.set(version="0.5.24")

    with pytest.raises(ConflictError, match=r"server's version 0\.5\.23 -> 0\.5\.24"):
        await add(desk)


async def test_servers_timeouts_and_live_limits_stay_the_runs(desk: Desk) -> None:
    await begin(desk)
    (run,) = runs.list_runs(desk.ledger)
    order = Order(run_id=run.id, who="operator", now=desk.clock.now())
    set_partition_budget(desk.ledger, order, "p", 5_000)
    desk.write("q", [user("a", "x")])
    spec = replace(
        desk.spec,
        partitions={"p": PartitionSpec(class_name="long", token_budget_tokens=9),
                    "q": PartitionSpec(class_name="wide")},
        server_urls=("http://127.0.0.1:9",),
        max_attempts=9,
        classes={
            "long": ClassSpec(concurrency=99, max_new_tokens=64),
            "wide": ClassSpec(concurrency=5, max_new_tokens=20),
        },
    )  # fmt: skip

    added = await add(desk, spec)

    stored = from_json(added.run.spec_json)
    assert stored.server_urls == (desk.simulator.url,)
    assert stored.max_attempts == 3
    assert stored.classes["long"].concurrency == 8
    assert stored.classes["wide"] == ClassSpec(concurrency=5, max_new_tokens=20)
    assert desk.partition("p").token_budget == 5_000
    assert desk.partition("q").max_new_tokens == 20
    assert (
        "as the run has them, not as the spec says: server_urls, max_attempts,"
        " concurrency of class long" in desk.said
    )


async def test_a_finished_run_goes_on(desk: Desk) -> None:
    await begin(desk)
    await move(desk, "nothing left")
    desk.write("q", [user("a", "x")])

    added = await add(desk)

    assert added.run.state is RunState.RUNNING
    details = [each.detail for each in latest(desk.ledger, added.run.id)]
    assert "run: finished -> running" in details


@pytest.mark.parametrize("events", [("pause",), ("stop", "workers gone")])
async def test_a_run_that_rests_goes_on_resting(desk: Desk, events: tuple[str, ...]) -> None:
    await begin(desk)
    await move(desk, *events)
    (before,) = runs.list_runs(desk.ledger)
    desk.write("q", [user("a", "x")])

    added = await add(desk)

    assert (added.run.state, added.run.state_since) == (before.state, before.state_since)
    assert f'run "test" is {before.state} and stays so; resume it to go on' in desk.said


async def test_nothing_new_changes_nothing(desk: Desk) -> None:
    await begin(desk)
    before = everything(desk)

    added = await add(desk)

    assert added.names == ()
    assert everything(desk) == before


@pytest.mark.parametrize("what", ["twice the same id", "no file", "folder of somebody"])
async def test_what_cannot_be_taken_in_is_not_added_at_all(desk: Desk, what: str) -> None:
    await begin(desk, strict_ids=True)
    desk.write("q", [user("a", "x")])
    spec = replace(desk.spec, partitions={})
    if what == "twice the same id":
        desk.write("r", [user(f"a{n % 150}", "x") for n in range(200)])
    elif what == "no file":
        own = {name: PartitionSpec(class_name="long") for name in ("q", "r")}
        spec = replace(desk.spec, partitions=own)
    else:
        theirs = desk.output / "q" / "responses.jsonl"
        theirs.parent.mkdir(parents=True)
        theirs.write_bytes(b"{}\n")
    before = everything(desk)

    with pytest.raises((InputError, ConflictError)) as refusal:
        await add(desk, spec)

    assert isinstance(refusal.value, LongwatchError)
    assert everything(desk) == before


async def test_another_output_folder_is_refused_before_a_server_is_asked(desk: Desk) -> None:
    await begin(desk)
    desk.simulator.stop()
    spec = replace(desk.spec, output_dir=str(desk.folder / "elsewhere"), partitions={})

    with pytest.raises(ConflictError, match="writes into"):
        await add(desk, spec)

    desk.simulator.start()


async def test_what_an_adding_left_undone_when_it_died_is_finished_by_the_next(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of a new partition stand, its prompts are not read yet, and the process ends."""
    await begin(desk)
    await move(desk, "nothing left")
    desk.write("q", [user("a", "x")])

    def die(*_: object) -> None:
        raise DiedError

    with monkeypatch.context() as patched:
        patched.setattr("app.submission.adding.take_in", die)
        with pytest.raises(DiedError):
            await add(desk)
    assert desk.partition("q").intake == "scanning"

    assert (await add(desk)).names == ()
    assert desk.partition("q").intake == "scanned"
    assert (await desk.tokenize("q")).n_tokenized == 1


async def test_a_step_of_the_supervisor_knows_the_class_of_what_was_added_meanwhile(
    desk: Desk,
) -> None:
    """The run was read before the adding, its partitions are read after it."""
    await begin(desk)
    (read_before,) = runs.list_runs(desk.ledger)
    desk.write("q", [user("a", "x")])
    wide = ClassSpec(concurrency=5, max_new_tokens=20)
    spec = replace(
        desk.spec,
        partitions={"q": PartitionSpec(class_name="wide")},
        classes={**desk.spec.classes, "wide": wide},
    )
    await add(desk, spec)
    await desk.tokenize("q")
    with ThreadPoolExecutor(1) as sealer:
        processes = Processes(desk.home, 0, lambda _: None)
        supervisor = Supervisor(
            desk.ledger, desk.settings, processes, desk.clock, desk.events.append, sealer
        )
        supervisor.leaving = True  # nothing is spawned
        supervisor._step_run(read_before)


async def test_a_run_that_changed_meanwhile_gets_nothing(desk: Desk) -> None:
    await begin(desk)
    (stale,) = runs.list_runs(desk.ledger)
    growth = Growth(partitions=(), spec_json="{}", fingerprint_json="{}")
    order = Order(run_id=stale.id, who="operator", now=desk.clock.now())
    for changed in (
        replace(stale, spec_json="other"),
        replace(stale, fingerprint_json="other"),
        replace(stale, state=RunState.STOPPED),
    ):
        before = everything(desk)
        with pytest.raises(ConflictError, match="changed at this very moment"):
            grow(desk.ledger, changed, growth, order)
        assert everything(desk) == before
