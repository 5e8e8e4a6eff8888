"""The living service of a home, over its JSON API; and how an order reaches home or ledger.

Owns the choice: where a service lives on the home, orders go to it, else straight to the ledger.
Invariant: an order goes one of the two ways, never both.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from app.api import carry_out
from app.api.ordering import VERBS
from app.api.schemas import RunOrder
from app.clock import Clock
from app.controls import find_run
from app.core.views import RunView
from app.errors import ConflictError, LongwatchError, NotFoundError
from app.gate import read_token
from app.gate.keys import CLI_AGENT
from app.ledger import lock, migrate, runs
from app.ledger.db import Ledger
from app.settings import Settings

Json = dict[str, Any]
_TIMEOUT_S = 30.0
_ADDRESS_TRIES = 50
_ADDRESS_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Api:
    """One service's API. Errors of the service come out as our own, with its words."""

    client: httpx.Client
    address: str

    def get(self, path: str) -> Json:
        return self._ask("GET", path, None, _TIMEOUT_S)

    def post(self, path: str, body: Json, timeout_s: float | None = _TIMEOUT_S) -> Json:
        return self._ask("POST", path, body, timeout_s)

    def _ask(self, method: str, path: str, body: Json | None, timeout_s: float | None) -> Json:
        try:
            answer = self.client.request(method, f"/api/v1{path}", json=body, timeout=timeout_s)
            value = answer.json()
        except httpx.HTTPError as error:
            raise LongwatchError(
                f"the service at {self.address} does not answer: {error or type(error).__name__}",
                hint="See its log in the home folder",
            ) from error
        except ValueError as error:
            raise LongwatchError(f"the service at {self.address} did not answer in JSON") from error
        if answer.is_success and isinstance(value, dict):
            return value
        raise _error_of(value, answer.status_code, self.address)


def _error_of(value: object, status: int, address: str) -> LongwatchError:
    told = value.get("error") if isinstance(value, dict) else None
    if not isinstance(told, dict):
        return LongwatchError(f"the service at {address} answered with status {status}")
    if status == 401:  # noqa: PLR2004 - no token
        return LongwatchError(
            f"the service at {address} does not take this token",
            hint="It was started with LONGWATCH_TOKEN; set the same here",
        )
    return LongwatchError(str(told.get("message")), hint=str(told.get("hint", "")))


@contextmanager
def living_api(settings: Settings) -> Iterator[Api | None]:
    """Open the API of the service that lives on the home; None if none does."""
    holder = _living_service(settings.home)
    if holder is None:
        yield None
        return
    given = settings.token.get_secret_value() if settings.token else None
    with httpx.Client(
        base_url=holder.address,
        headers={
            "authorization": f"Bearer {given or read_token(settings.home) or ''}",
            "user-agent": CLI_AGENT,
        },
        trust_env=False,
    ) as client:
        yield Api(client, holder.address)


def _living_service(home: Path) -> lock.Holder | None:
    """Return who lives on the home, once it has said where it listens."""
    holder = lock.living_service(home)
    for _ in range(_ADDRESS_TRIES):
        if holder is None or holder.address:
            return holder
        threading.Event().wait(_ADDRESS_EVERY_S)  # it is just starting
        holder = lock.living_service(home)
    raise ConflictError(f"the service on {home} has not said yet where it listens")


def open_ledger(home: Path) -> Ledger:
    """Return the home's ledger; NotFoundError if there is none yet."""
    path = home / "ledger.db"
    if migrate.revision_of(path) is None:
        raise NotFoundError(
            f"there is no ledger in {home.absolute()}",
            hint="Start a run there, or name the right folder with --home",
        )
    return Ledger(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An order that was carried out: what it did, and whether a service acts on it now."""

    sentence: str
    by_service: bool


def meant(ledger: Ledger, words: Sequence[str]) -> tuple[RunView, list[str]]:
    """Return the run that the words begin with, and the rest; without one, the only live run.

    Left out, the run is known by its partition being named first.
    """
    if not words:
        return find_run(ledger), []
    try:
        return find_run(ledger, words[0]), list(words[1:])
    except NotFoundError as no_run:
        try:
            only = find_run(ledger)
        except NotFoundError:
            raise no_run from None
        if words[0] not in [each.name for each in runs.partitions_of(ledger, only.id)]:
            raise
        return only, list(words)


def give_order(
    settings: Settings,
    words: Sequence[str],
    make_order: Callable[[list[str]], RunOrder],
    clock: Clock,
) -> Given:
    """Give the order to the service, or write it into the ledger for the next start.

    `words` name the run and what of it is meant; the rest of them makes the order.
    """
    ledger = open_ledger(settings.home)
    try:
        run, rest = meant(ledger, words)
        order = make_order(rest)
        with living_api(settings) as api:
            if api is None:
                return _directly(ledger, run, order, clock)
            verb = next(name for name, kind in VERBS.items() if isinstance(order, kind))
            answer = api.post(f"/runs/{run.id}/{verb}", json.loads(order.model_dump_json()))
    finally:
        ledger.close()
    return Given(sentence=str(answer["sentence"]), by_service=True)


def _directly(ledger: Ledger, run: RunView, order: RunOrder, clock: Clock) -> Given:
    who = "operator (command line)"
    answer = carry_out(ledger, run, order, who=who, now=clock.now(), service_lives=False)
    return Given(sentence=answer.sentence, by_service=False)
