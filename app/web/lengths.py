"""How long answers are, as a small histogram: of a partition on its page, of a run on its own.

Owns what stands under the bars. Pure. Invariant: nothing counted is said so, and drawn as nothing.
"""

from dataclasses import dataclass

from app.core import format as words
from app.core.histogram import histogram, place_of
from app.core.spread import Measure, Spread
from app.core.types import RunId
from app.figures import RunFigures
from app.ledger import measures
from app.ledger.db import Ledger
from app.web.draft import Draft
from app.web.lines import bars_path
from app.web.sheet import Block
from app.web.wording import rate, share

_EACH_LABEL = 3
_NONE = Spread()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """The structure: labels with their places in per cent, and the limit if there is one."""

    of: str
    table: str
    labels: tuple[tuple[str, str], ...]
    has_limit: bool
    has_any: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """How long answers are, and how many of them their limit has cut."""

    lengths: Spread = _NONE
    n_cut: int = 0


NO_ANSWERS = Answers()


def lengths(draft: Draft, answers: Answers, cap: int, *, of: str, table: str) -> Block:
    """Return the block of output lengths; `cap` is the limit of an answer, 0 if there are many."""
    bars = histogram(answers.lengths, cap)
    draft.path("len-bars", bars_path([bar.n for bar in bars]))
    if cap:
        x = f"{100 * place_of(cap, bars):.1f}%"
        draft.attr("len-limit", x1=x, x2=x)
    draft.text("len-says", said(answers, cap))
    about = Lengths(
        of=of,
        table=table,
        labels=tuple(
            (f"{100 * n / len(bars):.1f}%", words.tokens(bar.least))
            for n, bar in enumerate(bars)
            if n % _EACH_LABEL == 0
        ),
        has_limit=bool(cap),
        has_any=answers.lengths.n > 0,
    )
    return Block(id="lengths", template="partition/lengths.html", about=about)


def of_all(draft: Draft, run: RunFigures, answers: Answers, table: str) -> Block:
    """Return the block of a whole run; a limit is drawn where all partitions have the same."""
    caps = {each.max_new_tokens for each in run.partitions}
    cap = caps.pop() if len(caps) == 1 else 0
    of = words.plural(answers.lengths.n, "answer")
    return lengths(draft, answers, cap, of=of, table=table)


def of_run(ledger: Ledger, run_id: RunId) -> Answers:
    """Return how long the answers of a run are, and how many were cut."""
    return Answers(
        lengths=measures.of_run(ledger, run_id, Measure.OUTPUT),
        n_cut=measures.of_run(ledger, run_id, Measure.OUTPUT_CUT).n,
    )


def said(answers: Answers, cap: int) -> str:
    """Return the figures under the bars: median, p90, mean, and the share that was cut."""
    spread = answers.lengths
    median, p90, mean = spread.percentile(0.5), spread.percentile(0.9), spread.mean
    if median is None or p90 is None or mean is None:
        return "no answer has ended since lengths are counted"
    limit = f" at the limit of {cap:,}" if cap else " at their limit"
    return (
        f"median {rate(median)} · p90 {rate(p90)} · mean {rate(mean)} tokens"
        f" · {share(answers.n_cut, spread.n)} cut{limit}"
    )
