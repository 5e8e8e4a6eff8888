"""The list of runs: what is at work as cards on top, then the newest first in a table.

Owns what a line of the list says. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core import format as words
from app.core.estimate import Estimate
from app.core.states import RunState
from app.figures import RunFigures, concerns
from app.web.bars import bar, failed_words, lay
from app.web.draft import Draft
from app.web.head import pill_of
from app.web.sheet import Block, Sheet
from app.web.wording import DASH, ends, left, rate

MAX_RUNS = 50
_MAX_CARDS = 4
_MAX_NEEDS = 3
_MAX_NAME_CHARS = 60
_AT_WORK = (RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    key: str
    address: str
    name: str
    kind: str
    word: str
    n_needs: int
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the list says beside its lines. `notified` is who outside is told, as it is shown."""

    is_empty: bool
    n_cards: int
    choices: tuple[tuple[int, str], ...]
    notified: tuple[str, ...]


def choices_of(runs: Sequence[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """Return runs as they stand in a list to choose from: number and name, on one line."""
    return tuple((number, words.one_line(name)[:_MAX_NAME_CHARS]) for number, name in runs)


def runs_page(listed: Sequence[RunFigures], now: datetime, notified: tuple[str, ...] = ()) -> Sheet:
    """Return the list; at most `MAX_RUNS` are handed in."""
    draft = Draft(now)
    ordered = sorted(listed, key=lambda run: (run.state not in _AT_WORK, -run.run_id))
    n_cards = min(_MAX_CARDS, sum(run.state in _AT_WORK for run in ordered))
    children = tuple(_line(draft, run, n < n_cards) for n, run in enumerate(ordered))
    about = About(
        is_empty=not children,
        n_cards=n_cards,
        choices=choices_of([(run.run_id, run.name) for run in ordered]),
        notified=notified,
    )
    root = Block(id="page", template="runs/page.html", about=about, children=children)
    at_work = sum(run.state is RunState.RUNNING for run in ordered)
    return draft.sheet(root, f"{at_work} running · Longwatch" if at_work else "Longwatch")


def _line(draft: Draft, run: RunFigures, is_card: bool) -> Block:  # noqa: FBT001 - one of two forms
    key = f"r{run.run_id}"
    kind, word = pill_of(run)
    counts = run.counts
    lengths = bar(counts, None, run.tokens.used, None, run.percent)
    answers = f"{words.plural(counts.kept, 'answer')}{failed_words(counts)}"
    draft.attr(
        f"{key}-b",
        aria_valuenow=str(run.percent),
        aria_valuetext=f"{run.percent} %, {answers}",
    )
    lay(draft, key, lengths)
    tokens = words.tokens(run.tokens.used)
    draft.text(f"{key}-w", f"{run.percent} % · {answers} · {tokens} tokens")
    draft.text(f"{key}-v", rate(run.speed_tokens_per_s))
    draft.clock(f"{key}-a", run.created_at, otherwise=DASH)
    _end(draft, run, key)
    needs = concerns(run)
    if is_card:
        draft.text(f"{key}-q", _beside(run))
    about = Line(
        key=key,
        address=f"/runs/{run.run_id}",
        name=run.name,
        kind=kind,
        word=word,
        n_needs=len(needs),
        needs=tuple(words.one_line(each) for each in needs[:_MAX_NEEDS]) if is_card else (),
    )
    return Block(id=key, template="runs/card.html" if is_card else "runs/line.html", about=about)


def _beside(run: RunFigures) -> str:
    """Return what makes the speed of a card mean something."""
    parts = [f"{words.plural(run.n_in_flight, 'request')} in flight"]
    if run.best_tokens_per_s is not None:
        parts.append(f"best 5 min {rate(run.best_tokens_per_s)}")
    return " · ".join(parts)


def _end(draft: Draft, run: RunFigures, key: str) -> None:
    if run.state is RunState.FINISHED and run.created_at is not None:
        took_s = (run.state_since - run.created_at).total_seconds()
        draft.clock(f"{key}-e", run.state_since)
        draft.text(f"{key}-i", f"took {words.span(took_s)}")
        return
    estimate = run.time_left
    is_known = isinstance(estimate, Estimate) and run.state is RunState.RUNNING
    draft.clock(
        f"{key}-e",
        ends(estimate, run.at)[1] if is_known and isinstance(estimate, Estimate) else None,
        otherwise=DASH,
    )
    draft.text(f"{key}-i", f"in {left(estimate)}" if is_known else "")
