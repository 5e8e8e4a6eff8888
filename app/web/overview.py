"""The overview of a run as one sheet: head, tiles, partitions, chart, servers, activity.

Owns the assembly. Pure: everything that is shown is handed in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.core import format as words
from app.core.states import RunState
from app.figures import RunFigures, pressing
from app.ledger.activity import Activity
from app.web import charts, head, panels
from app.web.charted import Charted
from app.web.disk import disk
from app.web.draft import Draft
from app.web.filtering import EVERYTHING, SORTS, STATES, Listing, View
from app.web.lengths import of_all
from app.web.rows import rows
from app.web.sheet import Block, Sheet
from app.web.tiles import tiles
from app.web.wording import rate


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    run_id: int
    name: str
    n_partitions: int
    output_dir: str
    chosen: str = ""
    view: View = EVERYTHING.view
    states: tuple[tuple[str, str], ...] = tuple(STATES.items())
    sorts: tuple[tuple[str, str], ...] = tuple(SORTS.items())


def overview(
    run: RunFigures,
    drawn: Charted,
    chosen: str,
    entries: Sequence[Activity],
    listing: Listing = EVERYTHING,
) -> Sheet:
    """Return the page of one run; `chosen` is the range of its chart, `listing` of its table."""
    view = listing.view
    draft = Draft(run.at)
    names = {each.id: each.name for each in run.partitions}
    place = charts.run_place(run.run_id, chosen, view.rest)
    children = (
        head.signals(draft, run, "Overview"),
        head.banner(draft, run, has_orders=False),
        head.verdict(draft, run),
        tiles(draft, run),
        rows(draft, run, listing),
        charts.chart(draft, run, drawn.chart, chosen, drawn.marks, place),
        of_all(draft, run, drawn.answers, place.table),
        panels.servers(draft, run),
        panels.activity(draft, entries, names),
        disk(draft, run, drawn.disk),
    )
    draft.text("stop-n", words.plural(run.n_in_flight, "request"))
    about = About(
        run_id=run.run_id,
        name=run.name,
        n_partitions=len(run.partitions),
        output_dir=run.output_dir,
        chosen=chosen,
        view=view,
    )
    root = Block(id="page", template="overview/page.html", about=about, children=children)
    # what has ended is collected seldom and stays true: its page does not grow old
    is_over = run.state in (RunState.STOPPED, RunState.FINISHED)
    return draft.sheet(root, _title(run), None if is_over else run.at)


def _title(run: RunFigures) -> str:
    needs = len(pressing(run))
    mark = f"(!{needs}) " if needs else ""
    speed = f" · {rate(run.speed_tokens_per_s)} tok/s" if run.speed_tokens_per_s is not None else ""
    return f"{mark}{run.percent} %{speed} · {words.one_line(run.name)}"
