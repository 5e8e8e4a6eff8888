"""The list of runs as a kind of page: `/`."""

from fastapi import Request

from app.ledger import runs
from app.web.kinds import Desk, PageKey, PageKind
from app.web.runs import MAX_RUNS, runs_page
from app.web.sheet import Sheet

RUNS: PageKey = ("runs",)


def runs_kind(desk: Desk) -> PageKind:
    def key(_request: Request) -> PageKey:
        return RUNS

    def sheet(_key: PageKey) -> Sheet:
        listed = runs.list_runs(desk.ledger)[:MAX_RUNS]
        figures = [desk.service.figures(run.id) for run in listed]
        return runs_page(figures, desk.clock.now(), desk.service.notified())

    return PageKind(name="runs", path="/", key=key, address=lambda _: "/", sheet=sheet)
