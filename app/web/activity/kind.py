"""The list of activity as a kind of page: `/runs/7/activity?who=&event=&partition=&before=`.

Owns which part of the list a query means. `?at=123` is led to the page that holds that entry.
"""

from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request

from app.controls import find_run
from app.core.types import PartitionId, RunId
from app.errors import InputError
from app.figures import RunFigures
from app.ledger import activity
from app.ledger.activity import Listing, Wanted
from app.web.activity.entries import activity_page
from app.web.kinds import Desk, PageKey, PageKind
from app.web.sheet import Sheet

N_ENTRIES = 200
_MAX_WORD = 200
_FRESH_S = 1.0
_OLD_FRESH_S = 60.0  # of a page that ends before an entry: nothing is added to it
_FILTERS_FRESH_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What part of the list is meant; "" and 0 leave it open."""

    who: str = ""
    event: str = ""
    partition: str = ""
    before: int = 0

    @property
    def is_filtered(self) -> bool:
        return bool(self.who or self.event or self.partition)

    def query(self, before: int) -> str:
        """Return the query of a page with the same filters that ends before an entry."""
        pairs = {"who": self.who, "event": self.event, "partition": self.partition}
        found = {name: value for name, value in pairs.items() if value}
        return urlencode(found | ({"before": str(before)} if before else {}))


def activity_kind(desk: Desk) -> PageKind:
    def key(request: Request) -> PageKey:
        found = find_run(desk.ledger, request.path_params["run"])
        query = request.query_params
        at = _whole("at", query.get("at", ""))
        if at:
            return ("activity", found.id, "", "", "", activity.page_of(desk.ledger, found.id, at))
        words = [query.get(name, "").strip()[:_MAX_WORD] for name in ("who", "event", "partition")]
        return ("activity", found.id, *words, _whole("before", query.get("before", "")))

    def sheet(key: PageKey) -> Sheet | None:
        match key:
            case (_, int(run_id), str(who), str(event), str(partition), int(before)):
                run = desk.service.figures(RunId(run_id))
                asked = Asked(who=who, event=event, partition=partition, before=before)
                listed = desk.fresh.get(
                    key, _OLD_FRESH_S if before else _FRESH_S, lambda: _listing(desk, run, asked)
                )
                filters = desk.fresh.get(
                    ("activity filters", run_id),
                    _FILTERS_FRESH_S,
                    lambda: activity.filters(desk.ledger, run.run_id),
                )
                return activity_page(run, asked, listed, *filters)
        return None

    return PageKind(
        name="activity", path="/runs/{run}/activity", key=key, address=_address, sheet=sheet
    )


def _address(key: PageKey) -> str:
    match key:
        case (_, int(run_id), str(who), str(event), str(partition), int(before)):
            query = Asked(who=who, event=event, partition=partition).query(before)
            return f"/runs/{run_id}/activity" + (f"?{query}" if query else "")
    raise ValueError(f"no key of the list of activity: {key}")


def _listing(desk: Desk, run: RunFigures, asked: Asked) -> Listing:
    partition_id: PartitionId | None = None
    if asked.partition:
        ids = [each.id for each in run.partitions if each.name == asked.partition]
        if not ids:
            return Listing(entries=(), older_than=0)
        partition_id = ids[0]
    wanted = Wanted(
        who=asked.who, event=asked.event, partition_id=partition_id, before=asked.before
    )
    return activity.listing(desk.ledger, run.run_id, wanted, N_ENTRIES)


def _whole(name: str, given: str) -> int:
    """Return the number of an entry, 0 for none."""
    if not given:
        return 0
    # a ledger counts in 63 bits
    if not (given.isascii() and given.isdigit()) or int(given[:19]) >= activity.NO_END:
        raise InputError(
            f'{name} "{given[:40]}" is no number of an entry', hint="write for example 123"
        )
    return int(given)
