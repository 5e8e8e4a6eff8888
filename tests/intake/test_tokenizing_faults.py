"""Tokenizing goes on: after a server that was away, a locked ledger, a cancellation, a death."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from app.core.views import PartitionView
from app.events import IntakeProgress, ServerBack, ServerLost, SettleDelayed
from app.ledger.counters import recount
from app.ledger.db import Ledger
from app.seams import Seam
from app.simulator.tokenizer import encode_chat
from tests.intake.desk import Desk, until, user


def assert_all_there(desk: Desk, partition: PartitionView, n: int) -> None:
    """Each sample has its own ids, once, and the file holds nothing that nobody points to."""
    rows = desk.samples(partition.id)
    assert partition.intake == "tokenized"
    assert (len(rows), partition.n_tokenized) == (n, n)
    for row in rows:
        text = f"text {row['record_index']}"
        assert desk.ids_of(row) == encode_chat([{"role": "user", "content": text}])
    ranges = {row["token_offset"]: row["prompt_tokens"] for row in rows}  # replicas share one
    assert sum(ranges.values()) == partition.token_file_tokens
    assert desk.tokens_at(partition).stat().st_size == partition.token_file_tokens * 4
    assert recount(desk.ledger, partition.id) == []


def write(desk: Desk, n: int) -> None:
    desk.write("p", [user(f"a{i}", f"text {i}") for i in range(n)])


async def test_a_server_that_is_away_is_waited_for_and_costs_no_sample(desk: Desk) -> None:
    write(desk, 40)
    await desk.submit()
    desk.simulator.stop()

    tokenizing = asyncio.create_task(desk.tokenize())
    await until(lambda: any(isinstance(one, ServerLost) for one in desk.events), "lost")
    desk.simulator.start()
    partition = await tokenizing

    assert [type(one) for one in desk.events if isinstance(one, ServerLost | ServerBack)] == [
        ServerLost,
        ServerBack,
    ]
    assert partition.counts.rejected == 0
    assert_all_there(desk, partition, 40)


async def test_a_task_that_begins_with_an_old_view_cuts_nothing_that_is_recorded(
    desk: Desk,
) -> None:
    """The keeper's look may be older than the last batch of the task that it replaces."""
    write(desk, 12)
    await desk.submit()
    before = desk.partition()
    await desk.tokenize()

    partition = await desk.tokenize(view=before)

    assert before.token_file_tokens == 0
    assert_all_there(desk, partition, 12)


async def test_a_server_that_answers_503_rejects_nothing(desk: Desk) -> None:
    write(desk, 10)
    await desk.submit()
    desk.simulator.set(unavailable=True)

    tokenizing = asyncio.create_task(desk.tokenize())
    await until(lambda: any(isinstance(one, ServerLost) for one in desk.events), "lost")
    desk.simulator.set(unavailable=False)
    partition = await tokenizing

    assert partition.counts.rejected == 0
    assert_all_there(desk, partition, 10)


async def test_a_locked_ledger_delays_and_loses_nothing(desk: Desk) -> None:
    write(desk, 20)
    await desk.submit()
    desk.ledger.close()
    desk.ledger = Ledger(desk.ledger_path, busy_timeout_ms=20)

    with closing(sqlite3.connect(desk.ledger_path)) as other:
        other.execute("BEGIN IMMEDIATE")
        tokenizing = asyncio.create_task(desk.tokenize())
        await until(lambda: any(isinstance(one, SettleDelayed) for one in desk.events), "delayed")
        other.rollback()
        partition = await tokenizing

    assert_all_there(desk, partition, 20)


async def asked_by_now(desk: Desk) -> int:
    """Return how many prompts the server was asked for, what is still on its way included.

    Whatever lay in a socket when it was closed is read before a question that comes after it.
    """
    n = -1
    while n != (n := desk.simulator.stats.http_requests["/tokenize"]):
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.get(f"{desk.simulator.url}/model_info")
    return n


async def test_a_cancelled_tokenizing_goes_on_where_it_was(desk: Desk) -> None:
    write(desk, 700)
    await desk.submit()

    tokenizing = asyncio.create_task(desk.tokenize())
    await until(lambda: any(isinstance(one, IntakeProgress) for one in desk.events), "progress")
    tokenizing.cancel()
    await asyncio.gather(tokenizing, return_exceptions=True)
    half = desk.partition()
    asked_before = await asked_by_now(desk)
    partition = await desk.tokenize()

    assert 0 < half.n_tokenized < 700
    assert half.intake == "scanned"
    asked = desk.simulator.stats.http_requests["/tokenize"] - asked_before
    assert asked == 700 - half.n_tokenized + 1  # and once for the start token
    assert_all_there(desk, partition, 700)


@pytest.mark.parametrize(
    "seam",
    [
        f"{Seam.INTAKE_BATCH_COMMITTED}:1",
        f"{Seam.TOKENS_WRITTEN}:2",
        *(
            pytest.param(seam, marks=pytest.mark.slow)
            for seam in (
                f"{Seam.INTAKE_SCANNED}:1",
                f"{Seam.TOKENS_SYNCED}:2",
                f"{Seam.TOKENS_COMMITTED}:2",
                f"{Seam.MANIFEST_WRITTEN}:1",
                f"{Seam.MANIFEST_RENAMED}:1",
            )
        ),
    ],
)
async def test_a_death_between_any_two_effects_is_made_good_by_the_next_start(
    desk: Desk, tmp_path: Path, seam: str
) -> None:
    write(desk, 300)
    order = [sys.executable, "-m", "tests.intake.dying", str(tmp_path), desk.simulator.url]

    dead = await asyncio.to_thread(subprocess.run, [*order, seam], capture_output=True)
    again = await asyncio.to_thread(subprocess.run, [*order, ""], capture_output=True)

    assert dead.returncode == -signal.SIGKILL, dead.stderr
    assert again.returncode == 0, again.stderr
    assert_all_there(desk, desk.partition(), 600)
