"""The step before a retry, for a browser without script: what it would do, and the button. Pure."""

from dataclasses import dataclass

from app.core import format as words
from app.core.reasons import Choice
from app.figures import RunFigures
from app.ledger.failures import Survey
from app.web import head
from app.web.draft import Draft
from app.web.failures.groups import Count, doomed, groups_of, retryable, samples, warning
from app.web.sheet import Block, Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What is asked. `lines` are the groups with their counts; `fields` the choice."""

    address: str
    back: str
    question: str
    warning: str
    all: str
    others: str
    can_retry: bool
    lines: tuple[tuple[str, str], ...]
    more: int
    fields: tuple[tuple[str, str], ...]


MOST_LISTED = 12


def asking_page(run: RunFigures, found: Survey, choice: Choice) -> Sheet:
    """Return the page that asks once."""
    draft = Draft(run.at)
    names = {each.id: each.name for each in run.partitions}
    groups = [each for each in groups_of(found, names, choice) if each.can_retry]
    again = retryable(groups)
    in_vain = sum((count for _, count in doomed(groups)), Count())
    others = Count(n=again.n - in_vain.n, is_least=again.is_least)
    pairs = (
        ("partition", choice.partition),
        ("state", str(choice.state or "")),
        ("reason", choice.words),
        ("group", choice.group),
        ("spare", "1" if choice.is_sparing else ""),
    )
    about = Asking(
        address=f"/runs/{run.run_id}/failures/retry",
        back=f"/runs/{run.run_id}/failures",
        question=f"Try {samples(again)} again?" if again.n else "Nothing here can be tried again",
        warning=warning(groups),
        all=str(again),
        others=str(others) if in_vain.n and others.n else "",
        can_retry=again.n > 0,
        lines=tuple((str(each.count), each.reason) for each in groups[:MOST_LISTED]),
        more=max(0, len(groups) - MOST_LISTED),
        fields=tuple((name, value) for name, value in pairs if value),
    )
    children = (
        head.signals(draft, run, "Failures", is_live=False),
        Block(id="asking", template="failures/asking.html", about=about),
    )
    root = Block(id="page", template="failures/asking_page.html", children=children)
    return draft.sheet(root, f"Retry? · {words.one_line(run.name)}")
