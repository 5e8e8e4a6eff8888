"""The list of samples and one sample as kinds of pages; both are drawn once."""

from fastapi import Request

from app.controls import find_run
from app.core.spec import from_json
from app.core.types import RunId, SampleId
from app.core.visible import visible_line
from app.errors import NotFoundError
from app.ledger import runs
from app.ledger.searching import search
from app.web.kinds import Desk, PageKey, PageKind
from app.web.samples.asked import Asked, asked_of
from app.web.samples.listing import samples_page
from app.web.samples.one import sample_page
from app.web.samples.reading import N_SHOWN, Found, read_page, read_sample
from app.web.sheet import Sheet

_MOST_ID = 2**63 - 1


def samples_kind(desk: Desk) -> PageKind:
    def key(request: Request) -> PageKey:
        found = find_run(desk.ledger, request.path_params["run"])
        return ("samples", found.id, asked_of(request.query_params))

    def sheet(key: PageKey) -> Sheet | None:
        match key:
            case (_, int(run_id), Asked() as asked):
                return samples_page(
                    desk.service.figures(RunId(run_id)), asked, _found(desk, RunId(run_id), asked)
                )
        return None

    def address(key: PageKey) -> str:
        asked = key[2]
        return f"/runs/{key[1]}/samples{asked.query() if isinstance(asked, Asked) else ''}"

    return PageKind(
        name="samples",
        path="/runs/{run}/samples",
        key=key,
        address=address,
        sheet=sheet,
        is_live=False,
    )


def _found(desk: Desk, run_id: RunId, asked: Asked) -> Found:
    known = runs.partitions_of(desk.ledger, run_id)
    chosen = [each for each in known if asked.partition in ("", each.name)]
    if not chosen:
        raise NotFoundError(
            f'run {run_id} has no partition "{visible_line(asked.partition[:80])}"',
            hint=f"it has {', '.join(each.name for each in known)}",
        )
    if not asked.q:
        return read_page(desk.ledger, chosen, asked)
    hits = search(
        desk.ledger,
        [each.id for each in chosen],
        asked.q,
        state=asked.of_state,
        replicas=from_json(runs.get_run(desk.ledger, run_id).spec_json).samples_per_prompt,
        limit=N_SHOWN,
    )
    return Found(samples=hits.samples, has_more_hits=hits.has_more)


def one_sample_kind(desk: Desk) -> PageKind:
    def key(request: Request) -> PageKey:
        found = find_run(desk.ledger, request.path_params["run"])
        given = request.path_params["sample"]
        if not (given.isascii() and given.isdecimal() and int(given[:20]) <= _MOST_ID):
            raise NotFoundError(
                f"run {found.id} has no sample with the id {visible_line(given[:80])}",
                hint=f"see /runs/{found.id}/samples",
            )
        return ("sample", found.id, int(given[:20]))

    def sheet(key: PageKey) -> Sheet | None:
        match key:
            case (_, int(run_id), int(sample_id)):
                run = runs.get_run(desk.ledger, RunId(run_id))
                opened = read_sample(desk, run, SampleId(sample_id))
                return sample_page(desk.service.figures(run.id), opened)
        return None

    return PageKind(
        name="sample",
        path="/runs/{run}/samples/{sample}",
        key=key,
        address=lambda key: f"/runs/{key[1]}/samples/{key[2]}",
        sheet=sheet,
        is_live=False,
    )
