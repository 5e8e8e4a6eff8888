"""The servers of a run as a kind of page: `/runs/7/server`.

Owns what is read for it: each server's last words about itself, and what happened to it lately.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from fastapi import Request

from app.controls import find_run
from app.core.loads import ServerLoad
from app.core.spec import from_json
from app.core.types import RunId
from app.figures import RunFigures
from app.ledger import activity, runs, servers
from app.poller.happening import BACK, CHANGED, LOST, RESTARTED, begin_of
from app.web.kinds import Desk, PageKey, PageKind
from app.web.server_page.cards import Told, server_page
from app.web.sheet import Sheet

_FRESH_S = 5.0
_N_LOOKED_AT = 300  # newest entries that are searched for what happened to a server
_N_SHOWN = 5
_EVENTS = frozenset({LOST, BACK, CHANGED, RESTARTED})
_NOT_WATCHED = "no live run uses it, so it is not asked"


def server_kind(desk: Desk) -> PageKind:
    def key(request: Request) -> PageKey:
        return ("server", find_run(desk.ledger, request.path_params["run"]).id)

    def sheet(key: PageKey) -> Sheet | None:
        run_id = RunId(int(str(key[1])))
        run = desk.service.figures(run_id)
        told = desk.fresh.get(key, _FRESH_S, lambda: _told(desk, run_id))
        return server_page(_with_all(run, tuple(told)), told)

    return PageKind(
        name="server",
        path="/runs/{run}/server",
        key=key,
        address=lambda key: f"/runs/{key[1]}/server",
        sheet=sheet,
    )


def _with_all(run: RunFigures, urls: tuple[str, ...]) -> RunFigures:
    """Return the figures with every server that the run names, watched now or not."""
    known = {load.url: load for load in run.servers}
    absent = {url: ServerLoad(url=url, trouble=_NOT_WATCHED) for url in urls if url not in known}
    return replace(run, servers=(*run.servers, *absent.values()))


def _told(desk: Desk, run_id: RunId) -> Mapping[str, Told]:
    """Return what is stored of each server that the run names, in its order."""
    urls = from_json(runs.get_run(desk.ledger, run_id).spec_json).server_urls
    stored = {view.url: view for view in servers.servers(desk.ledger)}
    entries = [
        entry
        for entry in activity.latest(desk.ledger, run_id, _N_LOOKED_AT)
        if entry.event in _EVENTS
    ]
    found: dict[str, Told] = {}
    for url in urls:
        view, begin = stored.get(url), begin_of(url)
        facts = json.loads(view.facts_json) if view is not None else {}
        moments: list[datetime | None] = [None, None]
        if view is not None:
            moments = [view.checked_at, view.last_good_at]
        happened = [
            (entry.id, entry.at, entry.event, entry.detail.removeprefix(begin))
            for entry in entries
            if entry.detail.startswith(begin)
        ]
        found[url] = Told(
            facts=facts if isinstance(facts, dict) else {},
            checked_at=moments[0],
            last_good_at=moments[1],
            happened=tuple(happened[:_N_SHOWN]),
        )
    return found
