"""One server over time: its figures, its facts, its restarts.

Owns the window of its counters and the `ServerLoad` that others read; asks through a probe and
writes nothing. Invariants: figures that could not be read anew stay with the moment at which they
were read; nothing is computed across a restart; `load` is replaced whole, so any thread may read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.clock import Clock
from app.core.counters_window import CounterWindow, Point
from app.core.loads import ServerLoad
from app.core.types import ServerFacts
from app.errors import ServerAwayError, ServerError
from app.poller.figures import HISTORY_S, figures_of
from app.poller.happening import CHANGED, RESTARTED, Happening
from app.poller.identity import changes, identity_of, is_new_start
from app.poller.looking import Seen, look_at
from app.poller.presence import Presence
from app.sglang.probe import ServerProbe
from app.sglang.reading import Reading

LONGEST_LOOK_S = 3.0
_ASK_FACTS_AGAIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the ledger holds of a server: its identity, and since when it is noted as lost."""

    identity: Mapping[str, object] = field(default_factory=dict)
    noted_lost_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a look found that is to be written down. `facts`: read anew."""

    url: str
    at: datetime
    is_good: bool
    facts: ServerFacts | None = None
    happenings: tuple[Happening, ...] = ()


class ServerWatch:
    """Looks at one server, one look at a time."""

    def __init__(self, url: str, probe: ServerProbe, known: Known, clock: Clock) -> None:
        self.url = url
        self._probe = probe
        self._clock = clock
        self._presence = Presence(url, known.noted_lost_at)
        self._window = CounterWindow(HISTORY_S)
        self._began_with = self._identity = dict(known.identity)
        self._facts: ServerFacts | None = None  # of the process that answers now
        self._last_facts: ServerFacts | None = None
        self._facts_due_s: float | None = clock.monotonic()
        self._is_restart_counted = False
        self._progress: tuple[object, ...] = ()
        self._figures_trouble = self._facts_trouble = self._change = ""
        self.load = ServerLoad(url=url, away_since=known.noted_lost_at)

    async def close(self) -> None:
        await self._probe.close()

    async def look(self) -> Found:
        """Ask once, and renew `load`; this ends within LONGEST_LOOK_S."""
        began_s = self._clock.monotonic()
        seen = await look_at(self._probe)
        now = self._clock.now()
        if seen.silence is not None:
            happenings = self._presence.silent(seen.silence, now)
            self._figures_trouble = f"does not answer ({seen.silence.reason})"
            self._publish(None, now)
            return Found(url=self.url, at=now, is_good=False, happenings=happenings)
        restarts = self.load.n_restarts
        back = self._come_back(now)
        self._take(seen, now)
        left_s = began_s + LONGEST_LOOK_S - self._clock.monotonic()
        facts, changed = await self._renew_facts(left_s, now)
        self._publish(seen.reading, now)
        is_restart = self.load.n_restarts > restarts
        return Found(
            url=self.url,
            at=now,
            is_good=seen.is_good or facts is not None,
            facts=facts,
            happenings=(*self._returns(back, is_restart=is_restart, now=now), *changed),
        )

    def _come_back(self, now: datetime) -> tuple[Happening, ...]:
        if self._presence.away_since is not None:
            self._want_facts()
        return self._presence.answered(now)

    def _returns(
        self, back: tuple[Happening, ...], *, is_restart: bool, now: datetime
    ) -> tuple[Happening, ...]:
        """Tell a restart once: with the return, or by itself if nobody saw it away."""
        if not is_restart:
            return back
        if back:
            return tuple(replace(one, words=f"{one.words}, started anew") for one in back)
        return (Happening(url=self.url, event=RESTARTED, words="it was started anew", at=now),)

    def _take(self, seen: Seen, now: datetime) -> None:
        self._figures_trouble = seen.trouble
        if seen.reading is not None:
            self._take_reading(seen.reading, now)
        elif seen.is_unavailable:  # not a failure: there are none, and old ones say nothing
            load = self.load
            self._progress = ()
            self.load = ServerLoad(
                url=self.url, n_restarts=load.n_restarts, started_at=load.started_at
            )

    def _take_reading(self, reading: Reading, now: datetime) -> None:
        if self._window.add(self._point(reading)):
            self._restarted(now)
        elif self._progress and reading.progress != self._progress:
            self.load = replace(self.load, progressed_at=now)
        self._progress = reading.progress

    def _point(self, reading: Reading) -> Point:
        return Point(
            at_s=self._clock.monotonic(), counters=reading.counters, buckets=reading.first_tokens
        )

    def _restarted(self, now: datetime) -> None:
        self._is_restart_counted = True
        self._facts = None
        self._want_facts()
        self.load = replace(self.load, n_restarts=self.load.n_restarts + 1, started_at=now)

    def _want_facts(self) -> None:
        self._facts_due_s = self._clock.monotonic()

    async def _renew_facts(
        self, left_s: float, now: datetime
    ) -> tuple[ServerFacts | None, tuple[Happening, ...]]:
        """Read the facts if they are due; return them, and the entry if it is another server."""
        if self._facts_due_s is None or self._clock.monotonic() < self._facts_due_s:
            return None, ()
        try:
            facts = await self._probe.facts(left_s)
        except ServerError as error:
            self._facts_due_s = self._clock.monotonic() + _ASK_FACTS_AGAIN_S
            # a busy scheduler answers late: no trouble as long as its figures come
            self._facts_trouble = "" if isinstance(error, ServerAwayError) else error.message
            return None, ()
        self._facts_due_s, self._facts_trouble = None, ""
        if facts is None:
            return None, ()
        self._compare_start(facts, now)
        self._facts = self._last_facts = facts
        return facts, self._compare_identity(facts, now)

    def _compare_start(self, facts: ServerFacts, now: datetime) -> None:
        last, was_counted = self._last_facts, self._is_restart_counted
        if last is not None and not was_counted and is_new_start(last, facts):
            self._window.clear()
            self._restarted(now)
            self._facts_due_s = None
        self._is_restart_counted = False

    def _compare_identity(self, facts: ServerFacts, now: datetime) -> tuple[Happening, ...]:
        found = {name: value for name, value in identity_of(facts).items() if value is not None}
        words = changes(self._identity, found)
        self._identity = self._identity | found
        self._began_with = found | self._began_with
        since_begin = changes(self._began_with, found)
        self._change = f"server changed: {since_begin}" if since_begin else ""
        return (Happening(url=self.url, event=CHANGED, words=words, at=now),) if words else ()

    def _publish(self, reading: Reading | None, now: datetime) -> None:
        facts = self._facts or ServerFacts()
        load = self.load
        if reading is not None:
            load = replace(figures_of(load, reading, self._window, facts), at=now)
        troubles = (self._change, self._figures_trouble or self._facts_trouble)
        version = reading.version if reading is not None else None
        self.load = replace(
            load,
            away_since=self._presence.away_since,
            trouble="; ".join(trouble for trouble in troubles if trouble),
            version=facts.version or version or load.version,
            model_path=facts.model_path or load.model_path,
            simulated_time_factor=facts.simulated_time_factor,
        )
