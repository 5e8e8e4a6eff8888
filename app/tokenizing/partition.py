"""One partition from scanned to tokenized: ask the servers, write batches, in input order.

Owns the batch's size and age: it is written when a page is through or half a second has passed;
and how later turns of conversations come between, each when the answer before it is there.
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
from app.core.reasoning import marks_of
from app.core.retry import BACKOFF_CAP_S, BACKOFF_FIRST_S
from app.core.spec import RunSpec
from app.core.views import PartitionView
from app.errors import LedgerError, StorageError
from app.events import IntakeProgress, Observer, SettleDelayed
from app.files.turn_records import TurnRecords
from app.ledger import intake_rows, runs
from app.ledger.db import Ledger
from app.ledger.intake_rows import Untokenized
from app.prompt_tokens import PromptTokens, limits_of, start_id_of
from app.reports import write_rejected
from app.threads import in_thread
from app.tokenizing.batch import Answer, BatchWriter
from app.tokenizing.later_turns import LaterTurns
from app.tokenizing.records import Group, RecordReader
from app.tokenizing.saying import Sayings
from app.tokenizing.servers import TokenizeServers

TOKENIZED = "tokenized"
CONCURRENCY = 8
PAGE_SAMPLES = 256
BATCH_S = 0.5
LOOK_S = 0.5  # for later turns, while one waits

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizeOrder:
    """`prompts_sha256`: of the prompt file as the run was started with it, None if not known.

    `stays`: go on with later turns as long as one waits, not only with those that can be asked now.
    """

    partition: PartitionView
    spec: RunSpec
    token_path: Path
    prompts_sha256: str | None = None
    stays: bool = False


async def tokenize_partition(
    ledger: Ledger,
    order: TokenizeOrder,
    servers: TokenizeServers,
    clock: Clock,
    observer: Observer,
) -> None:
    """Give every scanned sample its ids or its reason, then say that the partition is tokenized.

    Later turns are asked as their conversations come to them.

    InputError if the prompt file is no longer what was scanned; StorageError if the token file is
    shorter than the ledger says.
    """
    writer = BatchWriter(ledger, order.partition, order.spec, order.token_path)
    prompts = Path(order.partition.prompts_path)
    records = TurnRecords(prompts, order.token_path.parent, order.prompts_sha256)
    try:
        await in_thread(writer.begin)
        prompt_tokens = PromptTokens(
            tokenize=servers.tokenize,
            limits=limits_of(order.spec, await servers.facts()),
            chat_template_kwargs=order.spec.chat_template_kwargs,
            start_id=await start_id_of(servers.tokenize),
        )
        sayings = Sayings(
            servers.detokenize, marks_of(order.spec.think_open_ids, order.spec.think_close_ids)
        )
        later = LaterTurns(ledger, order.partition.id, order.token_path, records, sayings)
        work = _Work(ledger, order, prompt_tokens, writer, clock)
        await work.run(RecordReader(prompts), later, observer)
    finally:
        records.close()
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
        self._stays = order.stays
        self._prompt_tokens = prompt_tokens
        self._writer = writer
        self._clock = clock
        self._observer: Observer = lambda _: None
        self._page_size = max(PAGE_SAMPLES, 2 * order.spec.samples_per_prompt)

    async def run(self, reader: RecordReader, later: LaterTurns, observer: Observer) -> None:
        self._observer = observer
        if self._partition.intake != TOKENIZED:
            await self._first_turns(reader, later)
        while await self._step(later):
            pass
        while self._stays and await self._patiently(later.is_waited_for):
            if not await self._step(later):
                await self._clock.sleep(LOOK_S)

    async def _step(self, later: LaterTurns) -> bool:
        """Ask or reject the later turns whose time has come; return whether there were any."""
        n_rejected, dues = await self._patiently(later.reject)
        if dues:
            read = await self._patiently(partial(later.read, dues))
            await self._tokenize(await later.groups(read))
        return bool(n_rejected or dues)

    async def _first_turns(self, reader: RecordReader, later: LaterTurns) -> None:
        after = -1
        while page := await self._patiently(partial(self._page, after)):
            is_last = len(page) < self._page_size
            groups = await in_thread(partial(reader.take, page, is_last=is_last))
            await self._tokenize(groups)
            await self._step(later)
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
