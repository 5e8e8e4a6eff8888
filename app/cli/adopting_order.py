"""One call of `adopt`: look, say what is there, ask, take over; how far it is meanwhile.

Owns what is said and asked. The lock is the caller's.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

import typer

from app.adopting import (
    Look,
    Looked,
    Source,
    look_at,
    sources_of,
    take_over,
    told_look,
    told_taken,
)
from app.adopting.finding import refuse_taking
from app.cli.foreground import WHO
from app.cli.voice import complain, say
from app.clock import Clock, SystemClock
from app.core.format import plural
from app.core.types import RunId
from app.errors import InputError, ServerAwayError
from app.files.earlier_lines import Fields
from app.ledger import runs
from app.ledger.db import Ledger
from app.settings import Settings
from app.sglang.client import ServerClient

_TOLD_EVERY_S = 10.0
_ASKED_AT_ONCE = 16


@dataclass(slots=True, kw_only=True)
class Adoption:
    """What the words of a call mean. `named`: files by partition."""

    ledger: Ledger
    settings: Settings
    run_id: RunId
    folder: Path
    fields: Fields
    named: dict[str, str]
    clock: Clock = field(default_factory=SystemClock)
    _told_at_s: float | None = None

    def look(self) -> list[Looked]:
        """Read everything and say what is there; partitions without a file too."""
        run = runs.get_run(self.ledger, self.run_id)
        sources = sources_of(self.ledger, run, self.folder, self.named)
        look = Look.of(self.ledger, run, self.fields)
        all_looked = []
        for source in sources:
            looked = look_at(self.ledger, look, source, self._progress)
            all_looked.append(looked)
            for line in told_look(looked):
                say(line)
        found = {each.partition.name for each in sources}
        others = [each.name for each in runs.partitions_of(self.ledger, run.id)]
        if without := [name for name in others if name not in found]:
            say(f"no file for {', '.join(without)}")
        return all_looked

    def carry_out(self, *, is_sure: bool) -> None:
        run = runs.get_run(self.ledger, self.run_id)
        sources = sources_of(self.ledger, run, self.folder, self.named)
        refuse_taking(self.ledger, run, sources)
        all_looked = self.look()
        n = sum(len(each.chosen) for each in all_looked)
        if not n:
            say("Nothing is there to take over.")
            return
        say(
            f"They will stand in run {run.id} as made under its settings (gen_id {run.gen_id}):"
            " same model, template and sampling."
        )
        _ask(n, is_sure=is_sure)
        look = Look.of(self.ledger, run, self.fields)
        for looked in all_looked:
            taken = take_over(
                self.ledger,
                look,
                looked,
                encode_texts=_Encoding(look.spec.server_urls, self.settings),
                who=WHO,
                clock=self.clock,
                random=SystemRandom(),
                progress=self._progress,
            )
            for line in told_taken(taken):
                say(line)
        say("The run goes on with the rest when it next starts.")

    def _progress(self, source: Source, n_bytes: int, n_lines: int) -> None:
        """Write a line now and then to the error output; small files need none."""
        now_s = self.clock.monotonic()
        self._told_at_s = now_s if self._told_at_s is None else self._told_at_s
        if now_s - self._told_at_s < _TOLD_EVERY_S:
            return
        self._told_at_s = now_s
        percent = 100 * n_bytes // max(1, source.path.stat().st_size)
        complain(f"{source.partition.name}: {percent} % of {source.path.name}, {n_lines:,} lines")


def _ask(n: int, *, is_sure: bool) -> None:
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise InputError(
            "nobody is there to be asked, and nothing was written",
            hint="look at it with --check, then give the same order with --yes",
        )
    typer.confirm(f"Take over {plural(n, 'answer')}?", abort=True)


class _Encoding:
    """Asks the first server that answers, some texts at once."""

    def __init__(self, urls: Sequence[str], settings: Settings) -> None:
        self._urls = urls
        self._key = settings.api_key.get_secret_value() if settings.api_key else None

    async def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        away: ServerAwayError | None = None
        for url in self._urls:
            async with ServerClient(url, api_key=self._key) as client:
                try:
                    return await _tokenized(client, texts)
                except ServerAwayError as error:
                    away = error
        raise away or InputError("the run has no server that could make ids of a text")


async def _tokenized(client: ServerClient, texts: Sequence[str]) -> list[list[int]]:
    gate = asyncio.Semaphore(_ASKED_AT_ONCE)

    async def one(text: str) -> list[int]:
        async with gate:
            return await client.tokenize({"prompt": text, "add_special_tokens": False})

    return list(await asyncio.gather(*(one(each) for each in texts)))
