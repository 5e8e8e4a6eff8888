"""Two runs side by side as a kind of page: `/compare?a=7&b=9`. Drawn once.

Owns what is read of the two. Without both it asks which two are meant.
"""

import json
from collections.abc import Mapping

from fastapi import Request

from app.controls import find_run
from app.core.spec import from_json
from app.core.types import RunId
from app.ledger import runs
from app.recorder.hindsight import look_back
from app.web.compare.page import choosing_page, compare_page
from app.web.compare.sides import Side
from app.web.kinds import Desk, PageKey, PageKind
from app.web.runs import MAX_RUNS, choices_of
from app.web.sheet import Sheet

_FRESH_S = 30.0  # a look back reads every row that is stored of a run


def compare_kind(desk: Desk) -> PageKind:
    def key(request: Request) -> PageKey:
        words = [request.query_params.get(name, "").strip() for name in ("a", "b")]
        ids = [find_run(desk.ledger, word).id if word else 0 for word in words]
        return ("compare", *ids)

    def sheet(key: PageKey) -> Sheet | None:
        match key:
            case (_, int(a), int(b)):
                listed = runs.list_runs(desk.ledger)[:MAX_RUNS]
                choices = choices_of([(run.id, run.name) for run in listed])
                now = desk.clock.now()
                if not a or not b or a == b:
                    return choosing_page(choices, (a, b), now)
                return compare_page(choices, _side(desk, RunId(a)), _side(desk, RunId(b)), now)
        return None

    return PageKind(
        name="compare",
        path="/compare",
        key=key,
        address=lambda key: f"/compare?a={key[1]}&b={key[2]}",
        sheet=sheet,
        is_live=False,
    )


def _side(desk: Desk, run_id: RunId) -> Side:
    view = runs.get_run(desk.ledger, run_id)
    stored = json.loads(view.fingerprint_json or "{}")
    return Side(
        figures=desk.service.figures(run_id),
        past=desk.fresh.get(("look back", run_id), _FRESH_S, lambda: look_back(desk.ledger, view)),
        spec=from_json(view.spec_json),
        fingerprint=_part(stored, "fingerprint"),
        server=_part(stored, "identity"),
        gen_id=view.gen_id,
    )


def _part(stored: object, name: str) -> Mapping[str, object]:
    found = stored.get(name) if isinstance(stored, dict) else None
    return found if isinstance(found, dict) else {}
