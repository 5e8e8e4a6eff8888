"""Submitting a spec: a new run, the same run again, and what may change between."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import SecretStr

from app.core.spec import ClassSpec, from_json
from app.core.states import RunState
from app.core.types import RunId
from app.errors import ConflictError
from app.ledger import runs, servers, workers
from app.ledger.activity import Deed, latest
from app.ledger.limits import set_concurrency, set_partition_budget
from app.ledger.orders import Order
from app.simulator.tokenizer import encode_chat
from app.submission.prompt_digests import file_mark
from tests.intake.desk import Desk, until, user


def manifest(desk: Desk) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads((desk.output / "manifest.json").read_bytes())
    return content


def move(desk: Desk, run_id: RunId, *events: str) -> None:
    for event in events:
        deed = Deed(who="operator", event=event, run_id=run_id)
        runs.move_run(desk.ledger, run_id, event, deed, desk.clock.now())


async def test_a_new_run_is_scanned_claimed_and_described(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    desk.own("p", token_budget_tokens=500, max_samples=7, concurrency=3)
    desk.change(token_budget_tokens=900, sampling={"temperature": 0.5})

    run = await desk.submit()

    partition = desk.partition()
    assert (run.state, run.token_budget) == (RunState.RUNNING, 900)
    assert (partition.token_budget, partition.goal_samples) == (500, 7)
    assert (partition.own_concurrency, partition.max_new_tokens) == (3, 64)
    assert partition.intake == "scanned"
    owner = orjson.loads((desk.output / ".longwatch.json").read_bytes())
    assert owner == {
        "home": str(desk.home),
        "runs": {str(run.id): {"name": "test", "partitions": ["p"]}},
    }
    stored = orjson.loads(run.fingerprint_json)
    assert stored["identity"]["model_path"] == "/models/toy"
    assert stored["fingerprint"]["temperature"] == 0.5
    entry = manifest(desk)["gen_ids"][run.gen_id]
    assert (entry["model"], entry["sampling"]) == ("/models/toy", {"temperature": 0.5})
    assert [one.url for one in servers.servers(desk.ledger)] == [desk.simulator.url]


async def test_secrets_of_the_server_are_in_no_file_of_ours(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(api_key="sesame-0815")
    desk.settings = desk.settings.model_copy(update={"api_key": SecretStr("sesame-0815")})
    desk.write("p", [user("a", "x")])

    await desk.submit()

    files = [path for path in desk.folder.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert [path for path in files if b"sesame" in path.read_bytes()] == []


async def test_the_same_submission_again_changes_nothing(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])

    first = await desk.submit()
    before = manifest(desk)
    second = await desk.submit()

    assert second == first
    assert manifest(desk) == before
    assert len(runs.list_runs(desk.ledger)) == 1


async def test_res_03_a_change_is_refused_with_everything_that_differs(desk: Desk) -> None:
    path = desk.write("p", [user("a", "x")])
    desk.change(sampling={"temperature": 0.7})
    await desk.submit()
    desk.change(
        sampling={"temperature": 1.0},
        classes={"long": ClassSpec(concurrency=9, max_new_tokens=32)},
    )
    desk.simulator.set(version="0.5.24")
    path.write_bytes(path.read_bytes() * 2)

    with pytest.raises(ConflictError) as refusal:
        await desk.submit()

    told = str(refusal.value)
    assert "temperature 0.7 -> 1.0" in told
    assert "max_new_tokens of p 64 -> 32" in told
    assert "prompts of p" in told
    assert "server's version 0.5.23 -> 0.5.24" in told
    assert "--accept-changes" in told
    assert desk.partition().max_new_tokens == 64


async def test_accepted_changes_go_on_under_a_new_gen_id(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    desk.change(sampling={"temperature": 0.7})
    first = await desk.submit()
    desk.change(sampling={"temperature": 1.0})

    second = await desk.submit(accept_changes=True)

    assert (second.id, second.state) == (first.id, RunState.RUNNING)
    assert second.gen_id != first.gen_id
    written = manifest(desk)
    assert list(written["gen_ids"]) == [first.gen_id, second.gen_id]
    assert written["changes"][0]["what"] == ["temperature 0.7 -> 1.0"]
    assert from_json(second.spec_json).sampling == {"temperature": 1.0}
    assert (await desk.submit()).gen_id == second.gen_id  # and from now on it is no change


async def test_prompts_are_tokenized_anew_where_an_accepted_change_needs_it(
    desk: Desk,
) -> None:
    desk.write("p", [user("a", "x"), user("b", "y")])
    await desk.run()
    desk.change(classes={"long": ClassSpec(concurrency=8, max_new_tokens=40_000)})

    await desk.submit(accept_changes=True)

    partition = desk.partition()
    assert (partition.intake, partition.n_tokenized, partition.max_new_tokens) == (
        "scanned",
        0,
        40_000,
    )
    await desk.tokenize()
    rows = desk.samples(partition.id)
    ids = encode_chat([{"role": "user", "content": "y"}])
    assert desk.ids_of(rows[1]) == ids
    assert rows[1]["max_new_tokens"] == 32_768 - 2 - len(ids)  # clamped, as it would be at first


@pytest.mark.parametrize("is_tokenized", [False, True])
async def test_a_run_keeps_the_prompts_it_began_with_whatever_is_accepted(
    desk: Desk, is_tokenized: bool
) -> None:
    path = desk.write("p", [user("a", "x"), user("b", "y")])
    first = await desk.submit()
    if is_tokenized:
        await desk.tokenize()
    _remember_size(desk, path)
    before = runs.list_runs(desk.ledger)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() * 2)

    for accepted in (False, True):
        with pytest.raises(ConflictError) as refusal:
            await desk.submit(accept_changes=accepted)
        assert str(refusal.value) == (
            "the prompts of p changed since the run took them in (2 records then; the file was"
            f" {size} bytes, now {2 * size}): a run keeps the prompts it began with. Restore the"
            " file, or start another run under another name"
        )

    assert runs.list_runs(desk.ledger) == before
    path.write_bytes(path.read_bytes()[:size])
    assert (await desk.submit()).gen_id == first.gen_id


def _remember_size(desk: Desk, path: Path) -> None:
    """Let the run remember the file, as it does once the last write is seconds ago."""
    past = path.stat().st_mtime - 60
    os.utime(path, (past, past))
    (run,) = runs.list_runs(desk.ledger)
    stored = orjson.loads(run.fingerprint_json)
    stored["seen"] = {"p": file_mark(path)}
    runs.set_identity(
        desk.ledger,
        run.id,
        fingerprint_json=orjson.dumps(stored).decode(),
        gen_id=run.gen_id,
        spec_json=run.spec_json,
    )


async def test_a_refusal_of_changed_prompts_and_settings_shows_no_digest(desk: Desk) -> None:
    path = desk.write("p", [user("a", "x")])
    run = await desk.submit()
    path.write_bytes(path.read_bytes() * 2)
    desk.change(sampling={"temperature": 0.1})

    with pytest.raises(ConflictError) as refusal:
        await desk.submit()

    told = str(refusal.value)
    assert "temperature not set -> 0.1; the prompts of p changed" in told
    assert "restore the file first" in told
    assert orjson.loads(run.fingerprint_json)["fingerprint"]["prompts@p"][:8] not in told


async def test_the_number_of_replicas_cannot_change(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    await desk.submit()
    desk.change(samples_per_prompt=4)

    with pytest.raises(ConflictError, match="cannot change samples_per_prompt"):
        await desk.submit(accept_changes=True)


async def test_accepted_changes_wait_until_no_worker_uses_the_old_settings(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    run = await desk.submit()
    now = desk.clock.now()
    worker = workers.register(desk.ledger, desk.partition().id, 30.0, now)
    desk.change(sampling={"temperature": 0.1})

    submitting = asyncio.create_task(desk.submit(accept_changes=True))
    await until(lambda: runs.get_run(desk.ledger, run.id).state is RunState.PAUSED, "paused")
    assert runs.get_run(desk.ledger, run.id).gen_id == run.gen_id
    workers.bury(desk.ledger, worker, "left, as it was told", now)
    changed = await submitting

    assert changed.gen_id != run.gen_id
    assert runs.get_run(desk.ledger, run.id).state is RunState.RUNNING


async def test_live_values_win_unless_the_flag_itself_changed(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    desk.write("q", [user("a", "x")])
    desk.own("p", token_budget_tokens=1000, concurrency=4)
    desk.own("q", token_budget_tokens=1000, concurrency=4)
    run = await desk.submit()
    order = Order(run_id=run.id, who="operator", now=desk.clock.now())
    for name in ("p", "q"):
        set_partition_budget(desk.ledger, order, name, 5000)
        set_concurrency(desk.ledger, order, name, 11)
    desk.own("q", token_budget_tokens=2000, concurrency=4)

    await desk.submit()

    p, q = desk.partition("p"), desk.partition("q")
    assert (p.token_budget, p.own_concurrency) == (5000, 11)
    assert (q.token_budget, q.own_concurrency) == (2000, 11)
    assert "q: budget 5,000 -> 2,000" in desk.said
    details = [one.detail for one in latest(desk.ledger, run.id)]
    assert any("5,000 -> 2,000" in detail for detail in details)


async def test_class_concurrency_and_timeouts_change_freely(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    first = await desk.submit()
    desk.change(
        classes={"long": ClassSpec(concurrency=99, max_new_tokens=64)}, request_timeout_s=5.0
    )

    second = await desk.submit()

    stored = from_json(second.spec_json)
    assert (stored.classes["long"].concurrency, stored.request_timeout_s) == (99, 5.0)
    assert second.gen_id == first.gen_id


async def test_a_stopped_run_goes_on_and_a_paused_one_stays_paused(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    run = await desk.submit()

    move(desk, run.id, "pause")
    assert (await desk.submit()).state is RunState.PAUSED
    assert 'run "test" is paused and stays so; resume it to go on' in desk.said

    move(desk, run.id, "stop")
    with pytest.raises(ConflictError, match="is stopping"):
        await desk.submit()
    move(desk, run.id, "workers gone")
    assert (await desk.submit()).state is RunState.RUNNING


async def test_a_finished_run_stays_finished_until_there_is_work_again(desk: Desk) -> None:
    desk.copy("p", "empty.jsonl")
    run = await desk.submit()
    move(desk, run.id, "nothing left")

    assert (await desk.submit()).state is RunState.FINISHED
    desk.write("new", [user("a", "x")])
    again = await desk.submit()

    assert again.state is RunState.RUNNING
    assert desk.partition("new").counts.pending == 1
    assert "new in this run: new" in desk.said


async def test_partitions_that_are_not_named_again_stay_in_the_run(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    desk.write("q", [user("a", "x")])
    await desk.submit()
    desk.own("p")

    run = await desk.submit()

    assert set(from_json(run.spec_json).partitions) == {"p", "q"}
    assert desk.partition("q").counts.pending == 1
    assert "also in this run, and going on as they were: q" in desk.said


async def test_the_same_name_with_another_output_folder_is_refused(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    await desk.submit()
    desk.change(output_dir=str(desk.folder / "elsewhere"))

    with pytest.raises(ConflictError, match="writes into"):
        await desk.submit()

    assert not (desk.folder / "elsewhere").exists()


async def test_a_folder_of_another_home_is_refused_by_name_and_leaves_no_run(
    desk: Desk, tmp_path: Path
) -> None:
    desk.write("p", [user("a", "x")])
    other = tmp_path / "other-home"
    desk.output.mkdir()
    owner = {"home": str(other), "runs": {"1": {"name": "theirs", "partitions": ["p"]}}}
    (desk.output / ".longwatch.json").write_bytes(orjson.dumps(owner))

    with pytest.raises(ConflictError, match=rf'belongs to the home {other} \(runs "theirs"\)'):
        await desk.submit()

    assert runs.list_runs(desk.ledger) == []
    assert sorted(path.name for path in desk.output.iterdir()) == [".longwatch.json"]


async def test_another_run_may_not_take_the_same_partition_of_a_folder(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    await desk.submit()
    desk.change(name="second")

    with pytest.raises(ConflictError, match='already holds p of run 1 "test"'):
        await desk.submit()


async def test_answers_of_nobody_are_not_replaced(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    theirs = desk.output / "p" / "responses.jsonl"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"{}\n")

    with pytest.raises(ConflictError, match=r"responses\.jsonl is there already"):
        await desk.submit()

    assert theirs.read_bytes() == b"{}\n"
    assert runs.list_runs(desk.ledger) == []


async def test_a_prompt_file_that_moved_is_read_where_it_is_now(desk: Desk) -> None:
    old = desk.write("p", [user("a", "x")])
    await desk.submit()
    moved = desk.prompts / "p.jsonl"
    old.rename(moved)

    await desk.submit()

    assert desk.partition().prompts_path == str(moved)
    assert (await desk.tokenize()).n_tokenized == 1


async def test_a_second_server_changes_nothing(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    first = await desk.submit()
    desk.change(
        server_urls=(desk.simulator.url, desk.simulator.url.replace("127.0.0.1", "localhost"))
    )

    second = await desk.submit()

    assert replace(second, spec_json="") == replace(first, spec_json="")
