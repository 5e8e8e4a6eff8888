"""One partition from scanned to tokenized: ask the servers, write batches, in input order.

Owns the batch's size and age: it is written when a page is through or half a second has passed.
May be cancelled and begun again at any point. A ledger or a disk that cannot be written now is
waited for; a prompt file that is no longer what was scanned ends it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.clock import Clock
from app.core.retry import BACKOFF_CAP_S, BACKOFF_FIRST_S
from app.core.spec import RunSpec
from app.core.views import PartitionView
from app.errors import LedgerError, StorageError
from app.events import IntakeProgress, Observer, SettleDelayed
from app.ledger import intake_rows, runs
from app.ledger.db import Ledger
from app.ledger.intake_rows import Untokenized
from app.prompt_tokens import PromptTokens, limits_of, start_id_of
from app.reports import write_rejected
from app.threads import in_thread
from app.tokenizing.batch import Answer, BatchWriter
from app.tokenizing.records import Group, RecordReader
from app.tokenizing.servers import TokenizeServers

CONCURRENCY = 8
PAGE_SAMPLES = 256
BATCH_S = 0.5

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizeOrder:
    partition: PartitionView
    spec: RunSpec
    token_path: Path


async def tokenize_partition(
    ledger: Ledger,
    order: TokenizeOrder,
    servers: TokenizeServers,
    clock: Clock,
    observer: Observer,
) -> None:
    """Give every scanned sample its ids or its reason, then say that the partition is tokenized.

    InputError if the prompt file is no longer what was scanned; StorageError if the token file is
    shorter than the ledger says.
    """
    writer = BatchWriter(ledger, order.partition, order.spec, order.token_path)
    reader = RecordReader(Path(order.partition.prompts_path))
    try:
        await in_thread(writer.begin)
        prompt_tokens = PromptTokens(
            tokenize=servers.tokenize,
            limits=limits_of(order.spec, await servers.facts()),
            chat_template_kwargs=order.spec.chat_template_kwargs,
            start_id=await start_id_of(servers.tokenize),
        )
        work = _Work(ledger, order, prompt_tokens, writer, clock)
        await work.run(reader, observer)
    finally:
        writer.close()


class _Work:
    def __init__(
        self,
        ledger: Ledger,
        order: TokenizeOrder,
        prompt_tokens: PromptTokens,
        writer: BatchWriter,
        clock: Clock,
    ) -> None:
        self._ledger = ledger
        self._partition = order.partition
        self._prompt_tokens = prompt_tokens
        self._writer = writer
        self._clock = clock
        self._observer: Observer = lambda _: None
        self._page_size = max(PAGE_SAMPLES, 2 * order.spec.samples_per_prompt)

    async def run(self, reader: RecordReader, observer: Observer) -> None:
        self._observer = observer
        after = -1
        while page := await self._patiently(partial(self._page, after)):
            is_last = len(page) < self._page_size
            groups = await in_thread(partial(reader.take, page, is_last=is_last))
            await self._tokenize(groups)
            after = groups[-1].samples[-1].position
        if self._writer.n_refused:
            await self._patiently(self._report)
        await self._patiently(partial(intake_rows.all_tokenized, self._ledger, self._partition.id))

    def _page(self, after: int) -> list[Untokenized]:
        return intake_rows.untokenized(self._ledger, self._partition.id, after, self._page_size)

    def _report(self) -> None:
        run = runs.get_run(self._ledger, self._partition.run_id)
        write_rejected(self._ledger, self._partition, Path(run.output_dir) / self._partition.name)

    async def _tokenize(self, groups: Sequence[Group]) -> None:
        """Ask for all groups at once and write what came, in order."""
        slots = asyncio.Semaphore(CONCURRENCY)

        async def ask(group: Group) -> Answer:
            async with slots:
                return Answer(group=group, found=await self._prompt_tokens.of(group.prompt))

        asked = [asyncio.create_task(ask(group)) for group in groups]
        batch: list[Answer] = []
        since = self._clock.monotonic()
        try:
            for task in asked:
                while not task.done():
                    await asyncio.wait({task}, timeout=BATCH_S)
                    if batch and self._clock.monotonic() - since >= BATCH_S:
                        await self._write(batch)
                        batch, since = [], self._clock.monotonic()
                batch.append(await task)
            await self._write(batch)
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _write(self, batch: Sequence[Answer]) -> None:
        await self._patiently(partial(self._writer.write, batch, self._prompt_tokens.limits))
        self._observer(
            IntakeProgress(
                partition_id=self._partition.id,
                n_samples=self._writer.n_tokenized,
                n_rejected=self._writer.n_refused,
            )
        )

    async def _patiently(self, work: Callable[[], T]) -> T:
        """Return what the work returns, tried again while ledger or disk cannot be used."""
        n_tries = 0
        while True:
            try:
                return await in_thread(work)
            except (LedgerError, StorageError) as error:
                self._observer(SettleDelayed(reason=str(error), n_waiting=self._page_size))
            await self._clock.sleep(min(BACKOFF_CAP_S, BACKOFF_FIRST_S * 2**n_tries))
            n_tries = min(n_tries + 1, 16)
