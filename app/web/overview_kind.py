"""The overview of a run as a kind of page: `/runs/7?range=1h&state=paused&sort=eta&q=math`."""

from fastapi import Request

from app.controls import find_run
from app.core.types import RunId
from app.figures import RunFigures
from app.ledger import activity
from app.web.charted import charted
from app.web.charts import known_range
from app.web.filtering import EVERYTHING, MOVING, Listing, View, order_of, view_of
from app.web.kinds import Desk, PageKey, PageKind
from app.web.overview import overview
from app.web.sheet import Sheet

N_ENTRIES = 12
_ORDER_FRESH_S = 15.0


def run_key(run_id: RunId, chosen: str, view: View = EVERYTHING.view) -> PageKey:
    """Return the key of a run's page with one range of its chart and one view of its rows."""
    return ("run", run_id, known_range(chosen), view.state, view.sort, view.q)


def overview_kind(desk: Desk) -> PageKind:
    def key(request: Request) -> PageKey:
        found = find_run(desk.ledger, request.path_params["run"])
        query = request.query_params
        return run_key(found.id, query.get("range", ""), view_of(query))

    def sheet(key: PageKey) -> Sheet | None:
        match key:
            case (_, int(run_id), str(chosen), str(state), str(sort), str(q)):
                view = View(state=state, sort=sort, q=q)
                figures = desk.service.figures(RunId(run_id))
                entries = activity.latest(desk.ledger, figures.run_id, N_ENTRIES)
                drawn = charted(desk, figures, chosen)
                listing = Listing(view=view, order=_order(desk, figures, sort))
                return overview(figures, drawn, chosen, entries, listing)
        return None

    return PageKind(
        name="run",
        path="/runs/{run}",
        key=key,
        address=_address,
        sheet=sheet,
    )


def _address(key: PageKey) -> str:
    _, run_id, chosen, state, sort, q = map(str, key)
    return f"/runs/{run_id}?range={chosen}{View(state=state, sort=sort, q=q).rest}"


def _order(desk: Desk, figures: RunFigures, sort: str) -> tuple[int, ...]:
    """Return the order of the rows; by a figure that moves, one that stands for some seconds."""
    if sort not in MOVING:
        return order_of(figures, sort)
    key = ("order", figures.run_id, sort)
    return desk.fresh.get(key, _ORDER_FRESH_S, lambda: order_of(figures, sort))
