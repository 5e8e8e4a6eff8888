"""All sources of a spec to their partitions: in parallel, compared if asked, each put in its place.

Owns the order of these and the lock of a partition's folder. Invariants: two preparations never
write one partition at a time; what one source cannot do does not touch the others; whatever
happens, no draft stays behind (a preparation that is killed leaves one, which the next removes).
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.errors import ConflictError, LongwatchError
from app.files.appending import make_folder
from app.files.space import storage_error
from app.sources.across import deduplicate
from app.sources.finding import SourceFile
from app.sources.parallel import Progress, Step, run_each
from app.sources.preparing import Job, Prepared, prepare
from app.sources.publishing import Published, publish
from app.sources.report import as_bytes, report_of
from app.sources.spec import PrepareSpec
from app.sources.writing import REPORT, draft_folder, remove_drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a source has become: its report and how its records got their place, or the error."""

    name: str
    report: Mapping[str, Any] | None = None
    published: Published | None = None
    error: LongwatchError | None = None


def prepare_all(
    spec: PrepareSpec,
    files: Mapping[str, Sequence[SourceFile]],
    show: Callable[[Sequence[Step]], None],
    *,
    overwrite: bool,
) -> list[Outcome]:
    """Prepare every source; return what each has become, in the order of the spec.

    ConflictError, before anything is read, if another preparation writes one of the partitions.
    """
    jobs = [
        Job(
            source=source,
            files=tuple(files[source.name]),
            draft=draft_folder(spec.output_dir / source.name, os.getpid()),
            seed=spec.seed,
            is_compared=spec.deduplicate_across,
        )
        for source in spec.sources
    ]
    with ExitStack() as stack:
        for job in jobs:
            stack.enter_context(_locked(job.draft.parent))
        if spec.deduplicate_across:
            return _compared(jobs, spec.processes, show, overwrite=overwrite)
        works = {job.source.name: (partial(whole, job, overwrite), job.n_bytes) for job in jobs}
        ends = run_each(works, spec.processes, show)
        return [
            end if isinstance(end := ends[name], Outcome) else Outcome(name=name, error=end)
            for name in works
        ]


def _compared(
    jobs: Sequence[Job],
    n_processes: int,
    show: Callable[[Sequence[Step]], None],
    *,
    overwrite: bool,
) -> list[Outcome]:
    """Prepare all, then take out what an earlier partition has, then put them in their places."""
    works = {job.source.name: (partial(prepare, job), job.n_bytes) for job in jobs}
    ends = run_each(works, n_processes, show)
    drafts = [(job, end) for job in jobs if isinstance(end := ends[job.source.name], Prepared)]
    left = {
        job.source.name: (job, prepared)
        for (job, _), prepared in zip(drafts, deduplicate(drafts), strict=True)
    }
    outcomes = []
    for name in works:
        end = ends[name]
        if isinstance(end, Prepared):
            try:
                outcomes.append(_put_in_place(*left[name], overwrite=overwrite))
            except LongwatchError as error:
                outcomes.append(Outcome(name=name, error=error))
        else:
            outcomes.append(Outcome(name=name, error=end))
    return outcomes


def whole(job: Job, overwrite: bool, on_progress: Progress) -> Outcome:  # noqa: FBT001 - bound by a partial, which a process can be given
    return _put_in_place(job, prepare(job, on_progress), overwrite=overwrite)


def _put_in_place(job: Job, prepared: Prepared, *, overwrite: bool) -> Outcome:
    report = report_of(job, prepared)
    partition = job.draft.parent
    try:
        (job.draft / REPORT).write_bytes(as_bytes(report))
    except OSError as error:
        raise storage_error(job.draft, "write to", error, then="prepare again") from error
    published = publish(job.draft, partition, prepared.gives, overwrite=overwrite)
    return Outcome(name=job.source.name, report=report, published=published)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other preparations out of a partition's folder; leave no draft in it."""
    try:
        make_folder(folder)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise storage_error(folder, "make", error, then="prepare again") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise ConflictError(
            f"another preparation writes {folder} now", hint="wait for its end"
        ) from error
    except OSError:  # some network file systems have no locks: go on without
        pass
    try:
        remove_drafts(folder)
        yield
    finally:
        remove_drafts(folder)
        with suppress(OSError):
            folder.rmdir()  # only where nothing else is in it
        os.close(descriptor)
