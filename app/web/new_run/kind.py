"""The review of a run that is not started yet, as a kind of page: `/new/<check>`."""

from fastapi import Request

from app.web.kinds import Desk, PageKey, PageKind
from app.web.new_run.checks import Checks
from app.web.new_run.review import review
from app.web.sheet import Sheet


def review_kind(desk: Desk, checks: Checks) -> PageKind:
    def key(request: Request) -> PageKey:
        return ("new", checks.get(request.path_params["check_id"]).id)

    def sheet(key: PageKey) -> Sheet:
        return review(checks.get(str(key[1])), desk.clock.now())

    return PageKind(
        name="new",
        path="/new/{check_id}",
        key=key,
        address=lambda key: f"/new/{key[1]}",
        sheet=sheet,
    )
