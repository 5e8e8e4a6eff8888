"""The head of a run's page: three signals, the banner, and the verdict.

Owns the answer to "is it healthy?"; the sentence of the verdict is `verdict_words`'. Pure.
Invariant: the three signals (page, runner, server) are never merged into one.
"""

from dataclasses import dataclass

from app.clock import iso
from app.controls import is_by_drain
from app.core import format as words
from app.core.conditions import Condition, ConditionKind
from app.core.loads import ServerLoad
from app.core.states import RUN_MOVES, PartitionState, RunState
from app.figures import RunFigures, concerns
from app.web.draft import Draft
from app.web.sheet import Block
from app.web.verdict_words import sentence
from app.web.wording import typed_moment, typed_tokens

# the pages of a run, and what their addresses end in
TABS = (
    ("Overview", ""),
    ("Failures", "/failures"),
    ("Samples", "/samples"),
    ("Activity", "/activity"),
    ("Server", "/server"),
)
_HEARTBEAT_LATE_S = 15.0
# these stand above everything: nothing goes on, or something may be lost
_LOUD = frozenset(
    {
        ConditionKind.NOT_SERVED,
        ConditionKind.SERVER_CHANGED,
        ConditionKind.WAITING_FOR_SERVER,
        ConditionKind.STALLED,
        ConditionKind.DISK_LOW,
        ConditionKind.LEDGER_FULL,
        ConditionKind.LEDGER_LOCKED,
    }
)
_WATCHED = (RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)
_GRAVE = frozenset(
    {ConditionKind.NOT_SERVED, ConditionKind.SERVER_CHANGED, ConditionKind.LEDGER_FULL}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The head line. `tabs` are the pages of the run, each with its address; `current` its name.

    `is_runner_at_rest`: it has no sign to give; `is_watched`: the servers are asked.
    """

    name: str
    run_id: int
    is_runner_late: bool
    is_server_late: bool
    is_runner_at_rest: bool
    is_watched: bool
    tabs: tuple[tuple[str, str], ...]
    current: str
    is_live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The pill of the whole run, and which orders it takes now; its limits as they are typed.

    `n_resumed`: how many partitions go on with the run; `n_also`: how many people have paused.
    """

    run_id: int
    name: str
    kind: str
    word: str
    can_pause: bool
    can_resume: bool
    can_stop: bool
    can_raise: bool
    budget: str
    deadline: str = ""
    deadline_seen: str = ""
    is_stopping: bool = False
    n_resumed: int = 0
    n_also: int = 0


def is_loud(condition: Condition) -> bool:
    """Return whether a condition stands in the banner."""
    return condition.kind in _LOUD


def signals(draft: Draft, run: RunFigures, current: str, *, is_live: bool = True) -> Block:
    """Return the head line: ages of runner and server, and the run's pages (`current` of `TABS`).

    A page that is not live shows no signals: they would stand still.
    """
    is_late = False
    if run.heartbeat_at is None:
        said = "no sign yet"
    else:
        age_s = (run.at - run.heartbeat_at).total_seconds()
        is_late = age_s > _HEARTBEAT_LATE_S and run.state is RunState.RUNNING
        said = f"{words.span(age_s)} ago"
    draft.text("l-runner", said if run.state is RunState.RUNNING else str(run.state))
    is_watched = run.state in _WATCHED
    server, is_away = _server(run) if is_watched else ("not watched", False)
    draft.text("l-server", server)
    draft.text("tab-failed", words.whole(run.counts.failed) if run.counts.failed else "")
    about = Signals(
        name=run.name,
        run_id=run.run_id,
        is_runner_late=is_late,
        is_server_late=is_away,
        is_runner_at_rest=run.heartbeat_at is None or run.state is not RunState.RUNNING,
        is_watched=is_watched and bool(_asked(run)),
        tabs=tuple((name, f"/runs/{run.run_id}{tail}") for name, tail in TABS),
        current=current,
        is_live=is_live,
    )
    return Block(id="signals", template="overview/signals.html", about=about)


def _asked(run: RunFigures) -> list[ServerLoad]:
    return [each for each in run.servers if each.at or each.away_since or each.trouble]


def _server(run: RunFigures) -> tuple[str, bool]:
    asked = _asked(run)
    if not asked:
        return "not asked yet", False
    away = [each for each in asked if each.away_since is not None]
    if not away:
        return ("ok" if len(asked) == 1 else f"{len(asked)} of {len(asked)} ok"), False
    if len(asked) == 1:
        return f"away {_away(run, away[0])}", True
    return f"{len(asked) - len(away)} of {len(asked)} ok", True


def _away(run: RunFigures, load: ServerLoad) -> str:
    since = load.away_since or run.at
    return words.span((run.at - since).total_seconds())


def banner(draft: Draft, run: RunFigures, *, has_orders: bool = True) -> Block:
    """Return the conditions that stand above everything, each with its sentence.

    `has_orders`: what could be done stands in it too; the overview has it right below.
    """
    loud = [one for one in run.conditions if is_loud(one)]
    for place, one in enumerate(loud):
        draft.text(f"ban-{place}", words.one_line(_full(run, one)))
        draft.spoken(str(one.kind), words.one_line(one.sentence))
    kinds = tuple(
        (str(one.kind), one.kind in _GRAVE, _pause_at(run, one) if has_orders else "")
        for one in loud
    )
    return Block(id="banner", template="overview/banner.html", about=kinds)


def _full(run: RunFigures, one: Condition) -> str:
    """Return a condition's sentence; of a server that is away also who waits."""
    if one.kind is not ConditionKind.WAITING_FOR_SERVER:
        return one.sentence
    n = run.counts.running
    wait = "1 request waits" if n == 1 else f"{n:,} requests wait"
    waiting = f" {wait} to be sent again." if n else ""
    return f"{one.sentence}{waiting} It is tried again all the time."


def _pause_at(run: RunFigures, one: Condition) -> str:
    is_away = one.kind is ConditionKind.WAITING_FOR_SERVER
    return f"/runs/{run.run_id}/pause" if is_away and run.state is RunState.RUNNING else ""


def _goes_on(run: RunFigures) -> tuple[int, int]:
    """Return how many partitions a resumed run goes on with, and how many stay paused."""
    rest = [each for each in run.partitions if not each.is_over]
    active = [each for each in rest if each.state is PartitionState.ACTIVE]
    is_any = any(each.state is PartitionState.ACTIVE for each in run.partitions)
    going = active
    if not is_any:  # what a stop let finish goes on; if nothing was, all do
        going = [each for each in rest if is_by_drain(each.state, each.reason)] or rest
    return len(going), len(rest) - len(going)


def verdict(draft: Draft, run: RunFigures) -> Block:
    """Return the pill and its sentence."""
    kind, word = pill_of(run)
    draft.text("verdict-s", sentence(run))
    moves = {event for state, event in RUN_MOVES if state is run.state}
    can_resume = "resume" in moves and run.state is not RunState.FINISHED
    n_resumed, n_also = _goes_on(run)
    about = Verdict(
        run_id=run.run_id,
        name=run.name,
        kind=kind,
        word=word,
        can_pause="pause" in moves,
        can_resume=can_resume,
        can_stop="stop" in moves,
        can_raise=run.state is not RunState.STOPPING
        and ("stop" in moves or run.counts.pending > 0),
        budget=typed_tokens(run.token_budget_tokens),
        deadline=typed_moment(run.deadline_at, run.at),
        deadline_seen="none" if run.deadline_at is None else iso(run.deadline_at),
        is_stopping=run.state is RunState.STOPPING,
        n_resumed=n_resumed if can_resume else 0,
        n_also=n_also if can_resume and run.state is RunState.PAUSED else 0,
    )
    return Block(id="verdict", template="overview/verdict.html", about=about)


def pill_of(run: RunFigures) -> tuple[str, str]:
    """Return look and word of a whole run."""
    rest = {
        RunState.PAUSED: ("pause", "Paused"),
        RunState.STOPPING: ("drain", "Stopping"),
        RunState.STOPPED: ("idle", "Stopped"),
        RunState.FINISHED: ("done", "Finished"),
    }
    if run.state in rest:
        return rest[run.state]
    return ("warn", "Needs attention") if concerns(run) else ("run", "Running")
