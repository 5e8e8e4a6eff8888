"""The review of a checked spec as one sheet: its standing, what is wrong, and what it comes to.

Owns which phase is drawn how. Pure. While a check or a start is at work the page asks for itself
again each two seconds where no script does.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from app.core import format as words
from app.core.spec_toml import to_toml
from app.submission import Planned
from app.web.draft import Draft
from app.web.new_run.checks import Check, Phase, Standing
from app.web.new_run.review_figures import PlannedRow, ServerRow, Totals, rows, server_rows, totals
from app.web.sheet import Block, Sheet

_REFRESH_S = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What the page shows, the words of progress apart. `findings` are (kind, sentence).

    `going_on` says which run a start goes on with, "" for a new one.
    """

    check_id: str
    name: str
    phase: str
    may_start: bool
    verdict: str
    refused: str
    going_on: str
    run_id: int | None
    findings: tuple[tuple[str, str], ...]
    rows: tuple[PlannedRow, ...]
    rejected: tuple[tuple[str, tuple[str, ...]], ...]
    totals: Totals | None
    servers: tuple[ServerRow, ...]
    output_dir: str
    toml: str
    is_pasted: bool


def review(check: Check, now: datetime) -> Sheet:
    """Return the page of a check as it stands now."""
    standing, draft = check.now, Draft(now)
    draft.text("said", words.one_line(standing.said))
    about = _about(check, standing)
    draft.spoken(f"{standing.phase} {bool(about.refused)}", about.verdict)
    body = Block(id="review", template="new_run/review.html", about=about)
    root = Block(id="page", template="new_run/page.html", about=about.name, children=(body,))
    sheet = draft.sheet(root, f"{about.verdict.split(':')[0]} · New run · Longwatch")
    # in the head, never in a block: what a script puts into a page refreshes it with a script too
    is_at_work = standing.phase in (Phase.CHECKING, Phase.STARTING)
    return replace(sheet, refresh_s=_REFRESH_S if is_at_work else 0)


def _about(check: Check, standing: Standing) -> Review:
    checked, spec = standing.checked, check.spec
    planned = checked.planned if checked else ()
    return Review(
        check_id=check.id,
        name=spec.name,
        phase=str(standing.phase),
        may_start=standing.may_start,
        verdict=_verdict(check, standing),
        refused=standing.refused,
        going_on=_going_on(standing),
        run_id=standing.run_id,
        findings=_findings(standing),
        rows=rows(checked) if checked else (),
        rejected=tuple(_rejected(each) for each in planned if each.scan.n_rejected),
        totals=totals(checked) if checked and planned else None,
        servers=server_rows(checked) if checked else (),
        output_dir=spec.output_dir,
        toml=to_toml(spec),
        is_pasted="spec" in check.asked,
    )


def _verdict(check: Check, standing: Standing) -> str:
    at_work = {
        Phase.STARTED: f"Started: run {standing.run_id}",
        Phase.STARTING: "Starting",
        Phase.CHECKING: "Checking",
    }
    checked = standing.checked
    if standing.phase in at_work:
        return at_work[standing.phase]
    if checked is None:
        return "The check could not be ended"
    if checked.errors:
        return f"It would not start: {words.plural(len(checked.errors), 'error')}"
    if standing.refused:
        return "The start was refused: nothing was begun"
    n_prompts = sum(each.n_prompts for each in checked.planned)
    said = f"{words.plural(len(checked.planned), 'partition')}, {words.plural(n_prompts, 'prompt')}"
    times = check.spec.samples_per_prompt
    return f"Ready to start: {said}" + (f", {times:,} answers to each" if times > 1 else "")


def _going_on(standing: Standing) -> str:
    run = standing.same_name
    if run is None or not standing.may_start:
        return ""
    return (
        f'Run {run.id} has the name "{run.name}" already and is {run.state}: Start goes on with'
        " that run. Give another name to begin a new one."
    )


def _findings(standing: Standing) -> tuple[tuple[str, str], ...]:
    checked = standing.checked
    if checked is None:
        return ()
    report = checked.report
    found = [("error", line) for line in checked.errors]
    found += [("warning", line) for line in (*report.warnings, *_space(standing))]
    return (*found, *(("notice", line) for line in report.notices))


def _space(standing: Standing) -> tuple[str, ...]:
    """Say where the answers may not find room."""
    checked = standing.checked
    if checked is None or checked.free_bytes is None or not checked.planned:
        return ()
    wanted, free = totals(checked).bytes_wanted, checked.free_bytes
    if wanted.high <= free:
        return ()
    will = "will not" if wanted.low > free else "may not"
    return (
        f"the answers {will} find room: {words.size(wanted.low)} to {words.size(wanted.high)}"
        f" may come, {words.size(free)} are free in {checked.spec.output_dir}",
    )


def _rejected(each: Planned) -> tuple[str, tuple[str, ...]]:
    """Return a head and the first lines of a file that are no prompts, each with its number."""
    scan = each.scan
    head = f"{each.name}: {words.plural(scan.n_rejected, 'line')} of {each.path.name} rejected"
    rest = scan.n_rejected - len(scan.rejected)
    more = (f"and {rest:,} more",) if rest else ()
    return head, (*map(words.one_line, scan.rejected), *more)
