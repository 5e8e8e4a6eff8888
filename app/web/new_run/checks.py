"""Checks that were begun in a browser, and the runs that were started from them; in memory only.

Owns their number, their age and that one check starts one run, however often Start is pressed
(ui-04). On one event loop; `Check.now` is a frozen value that threads may read. Invariants: at
most `MOST_CHECKS` are kept and one reads files at a time; a check that nobody waits for ends soon.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from threading import Event

from app.api import ServiceDoor
from app.clock import Clock
from app.core.spec import RunSpec
from app.core.views import RunView
from app.errors import ConflictError, LongwatchError, NotFoundError
from app.ledger import runs
from app.ledger.db import Ledger
from app.submission import Checked, check, permitted
from app.submission.checking import AbandonedError
from app.submission.permitting import prompts_outside
from app.threads import in_thread

logger = logging.getLogger("longwatch")
MOST_CHECKS = 8
KEPT_S = 3_600.0
START_WAIT_S = 8.0  # after it the page tells how the start goes on
_GONE = "this check is no longer kept: the service has begun anew, or an hour has passed"


class Phase(StrEnum):
    CHECKING = "checking"
    CHECKED = "checked"
    STARTING = "starting"
    STARTED = "started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a check is. `refused` says why it could not be ended, or why the start was refused.

    `same_name` is the run that a start would go on with.
    """

    phase: Phase = Phase.CHECKING
    said: str = "looking at the folders"
    checked: Checked | None = None
    same_name: RunView | None = None
    refused: str = ""
    run_id: int | None = None

    @property
    def may_start(self) -> bool:
        has_errors = self.checked is None or bool(self.checked.errors)
        return self.phase is Phase.CHECKED and not has_errors


@dataclass(slots=True, eq=False)
class Check:
    """One check; `asked` are the fields as they were typed, so that they can be changed."""

    id: str
    spec: RunSpec
    asked: Mapping[str, tuple[str, ...]]
    begun_at_s: float
    now: Standing = field(default_factory=Standing)
    abandoned: Event = field(default_factory=Event)
    checking: "asyncio.Task[None] | None" = None
    starting: "asyncio.Task[None] | None" = None

    @property
    def is_at_work(self) -> bool:
        return any(task and not task.done() for task in (self.checking, self.starting))


class Checks:
    """See the module."""

    def __init__(
        self,
        ledger: Ledger,
        service: ServiceDoor,
        clock: Clock,
        *,
        start_wait_s: float = START_WAIT_S,
    ) -> None:
        self._start_wait_s = start_wait_s
        self._ledger = ledger
        self._service = service
        self._clock = clock
        self._checks: dict[str, Check] = {}
        self._reading = asyncio.Lock()

    def begin(self, spec: RunSpec, asked: Mapping[str, tuple[str, ...]]) -> Check:
        """Begin to check a spec whose folders and servers are allowed."""
        self._forget()
        one = Check(
            id=secrets.token_urlsafe(9),
            spec=spec,
            asked=asked,
            begun_at_s=self._clock.monotonic(),
        )
        self._checks[one.id] = one
        one.checking = asyncio.create_task(self._check(one), name=f"check of {spec.name}")
        return one

    def get(self, check_id: str) -> Check:
        """Return a check that is still kept."""
        found = self._checks.get(check_id)
        if found is None:
            raise NotFoundError(_GONE, hint="check the run again at /new; what was started goes on")
        return found

    async def start(self, check_id: str, who: str) -> int | None:
        """Start the run of a check once; return its id, None where that takes a while yet.

        InputError, ConflictError and others of the start stand in the check afterwards.
        """
        one = self.get(check_id)
        if one.starting is None:
            if not one.now.may_start:
                raise ConflictError(
                    "this run cannot be started: its check is not over or found errors",
                    hint=f"see /new/{one.id}",
                )
            one.now = replace(one.now, phase=Phase.STARTING, said="looking at it once more")
            one.starting = asyncio.create_task(self._start(one, who), name="start of a run")
        await asyncio.wait({one.starting}, timeout=self._start_wait_s)
        return one.now.run_id

    async def close(self) -> None:
        """End everything: checks at once, a start when what it does in the ledger is whole."""
        tasks = []
        for one in self._checks.values():
            one.abandoned.set()
            tasks += [task for task in (one.checking, one.starting) if task and not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self) -> None:
        """Make room: what is too old goes, then the oldest that nobody works at."""
        now_s = self._clock.monotonic()
        resting = [one for one in self._checks.values() if not one.is_at_work]
        old = [one for one in resting if now_s - one.begun_at_s > KEPT_S]
        n_over = len(self._checks) - len(old) - MOST_CHECKS + 1
        rest = [one for one in resting if one not in old]
        if n_over > len(rest):
            raise ConflictError(
                f"{MOST_CHECKS} checks are at work already", hint="wait until one of them is over"
            )
        for one in [*old, *rest[: max(0, n_over)]]:
            del self._checks[one.id]

    async def _check(self, one: Check) -> None:
        loop = asyncio.get_running_loop()

        def say(words: str) -> None:
            loop.call_soon_threadsafe(self._say, one, words)

        try:
            if self._reading.locked():
                self._say(one, "waiting for another check to end")
            async with self._reading:
                await self._refuse_outside(one)
                checked = await check(
                    one.spec, self._service.settings, self._clock, say, one.abandoned
                )
                same = await in_thread(partial(self._same_name, one.spec.name))
            one.now = replace(one.now, phase=Phase.CHECKED, checked=checked, same_name=same)
        except LongwatchError as error:
            one.now = replace(one.now, phase=Phase.CHECKED, refused=str(error))
        except AbandonedError:
            return
        except Exception:
            number = secrets.token_hex(4)
            logger.exception("internal error %s", number)
            told = f"internal error {number}; look for it in the service's log"
            one.now = replace(one.now, phase=Phase.CHECKED, refused=told)

    async def _start(self, one: Check, who: str) -> None:
        try:
            await self._refuse_outside(one)
            run = await self._service.submit(
                one.spec, accept_changes=False, who=who, say=partial(self._say, one)
            )
            one.now = replace(one.now, phase=Phase.STARTED, run_id=run.id, refused="")
        except LongwatchError as error:
            one.starting = None  # it may be pressed again when the cause is mended
            one.now = replace(one.now, phase=Phase.CHECKED, refused=str(error))
        except Exception:
            number = secrets.token_hex(4)
            logger.exception("internal error %s", number)
            one.starting = None
            told = f"internal error {number}; look for it in the service's log"
            one.now = replace(one.now, phase=Phase.CHECKED, refused=told)

    async def _refuse_outside(self, one: Check) -> None:
        """Refuse prompt files that are links out of the roots, before a byte of them is read."""
        allowed = permitted(self._service.settings)
        outside = await in_thread(partial(prompts_outside, one.spec, allowed))
        if outside:
            raise ConflictError("; ".join(outside))

    def _same_name(self, name: str) -> RunView | None:
        return next((run for run in runs.list_runs(self._ledger) if run.name == name), None)

    def _say(self, one: Check, words: str) -> None:
        if one.now.phase in (Phase.CHECKING, Phase.STARTING):
            one.now = replace(one.now, said=words)
