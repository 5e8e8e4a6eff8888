"""Everything that a start would refuse, and what it would do, without doing any of it.

Owns the reading of every prompt file to its end: how many prompts, which lines are rejected, how
long prompts are. Invariant: writes nothing, waits for no server; probe files are removed again.
"""

import asyncio
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

from app.clock import Clock
from app.core.spec import PartitionSpec, RunSpec
from app.errors import InputError
from app.files.prompts import Prompt, Rejected
from app.files.space import free_bytes
from app.intake import ScanReport, count_records
from app.preflight import Report, preflight
from app.preflight.folders import nearest
from app.prompt_tokens import content_characters
from app.settings import Settings
from app.submission.refusing import refusals

Say = Callable[[str], None]


class AbandonedError(Exception):
    """Nobody waits for this check any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How long the prompts of one kind are, in its unit: characters of texts, or token ids."""

    n_prompts: int
    total: int
    median: int
    longest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One partition as it would start. `concurrency` is its own, None: its class's share.

    `characters` is of the prompts that are texts, `ids` of those that are token ids already.
    """

    name: str
    path: Path
    size_bytes: int
    scan: ScanReport
    limits: PartitionSpec
    characters: Lengths | None
    ids: Lengths | None

    @property
    def n_prompts(self) -> int:
        return self.scan.n_records - self.scan.n_rejected

    @property
    def max_new_tokens(self) -> int:
        return self.limits.max_new_tokens or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check found. `free_bytes` is of the output folder, None: it does not say."""

    spec: RunSpec
    report: Report
    errors: tuple[str, ...]
    planned: tuple[Planned, ...]
    free_bytes: int | None


async def check(
    spec: RunSpec, settings: Settings, clock: Clock, say: Say, abandoned: Event
) -> Checked:
    """Return what a start would come to. `say` is told of progress, from threads too.

    AbandonedError soon after `abandoned` is set.
    """
    report = await preflight(replace(spec, startup_wait_s=0.0), settings, clock, say)
    return await asyncio.to_thread(partial(_read, spec, settings, report, clock, say, abandoned))


def _read(
    spec: RunSpec, settings: Settings, report: Report, clock: Clock, say: Say, abandoned: Event
) -> Checked:
    refused = refusals(settings.home.resolve(), spec, report, clock.now())
    errors = list(dict.fromkeys([*report.errors, *refused]))

    def look(_record: object) -> None:
        if abandoned.is_set():
            raise AbandonedError

    planned = plan(spec, report, say, errors, look, has_progress=True)
    return Checked(
        spec=spec,
        report=report,
        errors=tuple(errors),
        planned=tuple(planned),
        free_bytes=free_bytes(nearest(Path(spec.output_dir)), settings.space_timeout_s),
    )


def plan(
    spec: RunSpec,
    report: Report,
    say: Say,
    errors: list[str],
    look: Callable[[object], None] | None = None,
    *,
    has_progress: bool = False,
) -> list[Planned]:
    """Read every prompt file whole; what cannot be read to its end is added to `errors`."""
    planned = []
    for place, (name, limits) in enumerate(report.partitions.items(), start=1):
        if has_progress:
            say(f"reading the prompts of {name}, {place} of {len(report.partitions)}")
        path, measure = report.prompts[name], _Measure(look)
        try:
            scan = count_records(name, path, spec, say, measure)
            size_bytes = path.stat().st_size
        except InputError as error:
            errors.append(str(error))
            continue
        except OSError as error:
            errors.append(f"cannot read {path}: {error.strerror}")
            continue
        planned.append(
            Planned(
                name=name,
                path=path,
                size_bytes=size_bytes,
                scan=scan,
                limits=limits,
                characters=_lengths(measure.characters),
                ids=_lengths(measure.ids),
            )
        )
    return planned


class _Measure:
    """Takes down how long each prompt is; four bytes of memory a prompt."""

    def __init__(self, look: Callable[[object], None] | None) -> None:
        self._look = look
        self.characters, self.ids = array("I"), array("I")

    def __call__(self, record: Prompt | Rejected) -> None:
        if self._look is not None:
            self._look(record)
        if isinstance(record, Rejected):
            return
        if record.input_ids is None:
            self.characters.append(content_characters(record))
        else:
            self.ids.append(len(record.input_ids))


def _lengths(found: Sequence[int]) -> Lengths | None:
    if not found:
        return None
    ordered = sorted(found)
    return Lengths(
        n_prompts=len(ordered),
        total=sum(ordered),
        median=ordered[len(ordered) // 2],
        longest=ordered[-1],
    )
