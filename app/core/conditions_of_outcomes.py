"""The conditions of how a partition's last answers ended: one rule for each way to go wrong.

Owns *many mismatched*, *many empty*, *failing*, *many degenerate* and *many truncated*: their
shares and windows, their sentences, and where going on would only make waste. Each begins when more
than a share of the last N ended so, as soon as that is certain, and ends at four fifths of it, so
that nothing flaps at the edge. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.core.conditions import Condition, ConditionKind, Key
from app.core.thresholds import RunThresholds

_END_MARGIN_RATIO = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of the last `n` went wrong; `n` is less than the window if no more have ended."""

    n: int
    n_bad: int

    @property
    def ratio(self) -> float:
        return self.n_bad / self.n if self.n else 0.0


NOTHING_ENDED = Share(n=0, n_bad=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How the last outcomes of a partition ended, each kind over its own window.

    `mismatched` counts answers, retried ones too: the server was prompted with another number of
    tokens than was sent. `is_working`: it may take samples now. `n_ended_since`, `n_answers_since`:
    what has come since the partition was last set going, as far as this service saw it.
    """

    failed: Share = NOTHING_ENDED
    truncated: Share = NOTHING_ENDED
    suspect: Share = NOTHING_ENDED
    empty: Share = NOTHING_ENDED
    mismatched: Share = NOTHING_ENDED
    n_in_flight: int = 0
    is_working: bool = True
    n_ended_since: int = 0
    n_answers_since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way to go wrong. `n_since` is None where it never calls for a pause."""

    kind: ConditionKind
    share: Share
    bound: float
    window: int
    words: str
    n_since: int | None = None

    def holds(self, *, held: bool, least: int) -> bool:
        """Return whether too many went wrong; of a window not full yet, whatever is to come."""
        if not held and self.share.n < least:
            return False
        bound = self.bound * (_END_MARGIN_RATIO if held else 1.0)
        return self.share.n_bad > bound * max(self.share.n, self.window)


def _rules(name: str, seen: Outcomes, limits: RunThresholds) -> tuple[Rule, ...]:
    return (
        Rule(
            kind=ConditionKind.MANY_MISMATCHED,
            share=seen.mismatched,
            bound=limits.mismatch_share_pause,
            window=limits.mismatch_window,
            words=f"answers to {name} were made from another number of prompt tokens than was"
            " sent. Look at the server's context length, and at whether it changes prompts.",
            n_since=seen.n_answers_since,
        ),
        Rule(
            kind=ConditionKind.MANY_EMPTY,
            share=seen.empty,
            bound=limits.empty_share_pause,
            window=limits.empty_window,
            words=f"answers of {name} are empty: the first token ends them. Look at its prompts,"
            " the chat template and the stop tokens.",
            n_since=seen.n_ended_since,
        ),
        Rule(
            kind=ConditionKind.FAILING,
            share=seen.failed,
            bound=limits.failing_share,
            window=limits.failing_window,
            words=f"samples of {name} failed; each has its reason. Retry them once the cause is"
            " gone, pause it if going on is of no use.",
        ),
        Rule(
            kind=ConditionKind.MANY_DEGENERATE,
            share=seen.suspect,
            bound=limits.suspect_share,
            window=limits.suspect_window,
            words=f"answers of {name} repeat themselves (suspect). Look at some of them, and at"
            " temperature and penalties.",
        ),
        Rule(
            kind=ConditionKind.MANY_TRUNCATED,
            share=seen.truncated,
            bound=limits.truncated_share,
            window=limits.truncated_window,
            words=f"answers of {name} are truncated: max_new_tokens cuts them. Raise it with"
            " longwatch extend, unless they are to be cut.",
        ),
    )


def outcome_conditions(
    name: str,
    seen: Outcomes,
    limits: RunThresholds,
    now: datetime,
    last: Mapping[Key, Condition],
) -> list[Condition]:
    """Return which hold of the partition, the gravest first.

    What is in flight counts where the ones that go wrong end first of all that began together:
    as many must have ended before their share says anything.
    """
    found = []
    for rule in _rules(name, seen, limits):
        before = last.get((rule.kind, name))
        n_least = max(rule.window, seen.n_in_flight)
        least = n_least if rule.kind is ConditionKind.MANY_EMPTY else 0
        if not rule.holds(held=before is not None, least=least):
            continue
        is_full = rule.n_since is not None and rule.n_since >= n_least
        wastes = is_full and seen.is_working and rule.holds(held=False, least=0)
        found.append(
            Condition(
                kind=rule.kind,
                since=before.since if before else now,
                sentence=f"{rule.share.n_bad:,} of the last {rule.share.n:,} {rule.words}",
                partition=name,
                ratio=rule.share.ratio,
                wastes=wastes and limits.auto_pause,
            )
        )
    return found
