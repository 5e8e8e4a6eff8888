"""Failures as a kind of page, and the step that asks before a retry where there is no script.

Owns the reading of their query. A survey of a run is made each five seconds at most, whoever looks,
and anew after a retry.
"""

from urllib.parse import urlencode

from fastapi import Request

from app.controls import find_run
from app.core.reasons import FAILURES, Choice
from app.core.states import SampleState
from app.core.types import RunId
from app.core.visible import visible_line
from app.errors import InputError, NotFoundError
from app.figures import RunFigures
from app.ledger.failures import Survey, survey
from app.web.failures.asking import asking_page
from app.web.failures.page import failures_page
from app.web.kinds import Desk, PageKey, PageKind
from app.web.sheet import Sheet

MAX_WORDS = 300
_FRESH_S = 5.0
SURVEY = "survey"


def failures_kind(desk: Desk) -> PageKind:
    def sheet(key: PageKey) -> Sheet | None:
        run, choice = _of(desk, key)
        return failures_page(run, surveyed(desk, run, choice), choice)

    return PageKind(
        name="failures",
        path="/runs/{run}/failures",
        key=lambda request: _key(desk, request, "failures"),
        address=address,
        sheet=sheet,
    )


def asking_kind(desk: Desk) -> PageKind:
    """Return the page that says what a retry would do, with the button that does it."""

    def sheet(key: PageKey) -> Sheet | None:
        run, choice = _of(desk, key)
        return asking_page(run, surveyed(desk, run, choice), choice)

    return PageKind(
        name="asking-retry",
        path="/runs/{run}/failures/retry",
        key=lambda request: _key(desk, request, "asking-retry"),
        address=lambda key: address(key).replace("/failures", "/failures/retry", 1),
        sheet=sheet,
        is_live=False,
    )


def address(key: PageKey) -> str:
    return f"/runs/{key[1]}/failures{query_of(_choice(key))}"


def query_of(choice: Choice) -> str:
    """Return a choice as the query of an address, with its question mark; "" for all."""
    pairs = fields_of(choice)
    return f"?{urlencode(pairs)}" if pairs else ""


def fields_of(choice: Choice) -> list[tuple[str, str]]:
    """Return a choice as the fields of a form."""
    pairs = [
        ("partition", choice.partition),
        ("state", str(choice.state or "")),
        ("reason", choice.words),
        ("group", choice.group),
        ("spare", "1" if choice.is_sparing else ""),
    ]
    return [(name, value) for name, value in pairs if value]


def choice_of(fields: dict[str, str]) -> Choice:
    """Return what the fields of a form or query mean; InputError names the field."""
    state = fields.get("state", "")
    if state and state not in FAILURES:
        raise InputError(
            f'state "{visible_line(state[:40])}" is none of {", ".join(FAILURES)}',
            hint="leave it out for all of them",
        )
    words = " ".join(fields.get("reason", "").split())
    if len(words) > MAX_WORDS:
        raise InputError(f"reason has {len(words)} characters, at most {MAX_WORDS} are searched")
    return Choice(
        partition=fields.get("partition", ""),
        state=SampleState(state) if state else None,
        words=words,
        group=fields.get("group", ""),
        is_sparing=fields.get("spare") == "1",
    )


def _key(desk: Desk, request: Request, name: str) -> PageKey:
    found = find_run(desk.ledger, request.path_params["run"])
    choice = choice_of({key: value.strip() for key, value in request.query_params.items()})
    if choice.partition:
        known = [each.name for each in desk.service.figures(found.id).partitions]
        if choice.partition not in known:
            raise NotFoundError(
                f'run {found.id} has no partition "{visible_line(choice.partition[:80])}"',
                hint=f"it has {', '.join(known)}",
            )
    return (name, found.id, *sorted(fields_of(choice)))


def _choice(key: PageKey) -> Choice:
    return choice_of(dict(key[2:]))  # type: ignore[arg-type]  # pairs, as `_key` has put them


def _of(desk: Desk, key: PageKey) -> tuple[RunFigures, Choice]:
    run_id = key[1]
    if not isinstance(run_id, int):
        raise NotFoundError("there is no such page")
    return desk.service.figures(RunId(run_id)), _choice(key)


def surveyed(desk: Desk, run: RunFigures, choice: Choice) -> Survey:
    ids = {each.name: each.id for each in run.partitions}
    partition_id = ids.get(choice.partition)
    return desk.fresh.get(
        (SURVEY, run.run_id, partition_id, choice.state),
        _FRESH_S,
        lambda: survey(desk.ledger, RunId(run.run_id), partition_id, choice.state),
    )
