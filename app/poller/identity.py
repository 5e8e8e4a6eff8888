"""What a server says of itself, compared with what was known of it before.

Owns which facts make it another server (model, weights) and which tell a new start. Invariant: a
fact that one side does not know is no difference.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict

import orjson

from app.core.types import ServerFacts

_IDENTITY = ("model_path", "weight_version")
_START_MARKS = ("startup_time", "random_seed")


def facts_to_json(facts: ServerFacts) -> str:
    """Return the form in which the ledger keeps facts; secrets were left out when they came."""
    return orjson.dumps(asdict(facts), default=dict).decode()


def identity_in(facts_json: str) -> dict[str, object]:
    """Return the identity that stored facts hold, empty if they hold none."""
    stored = json.loads(facts_json)
    return {name: stored.get(name) for name in _IDENTITY} if isinstance(stored, dict) else {}


def identity_of(facts: ServerFacts) -> dict[str, object]:
    return {name: getattr(facts, name) for name in _IDENTITY}


def changes(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """Return the differences in words, "" if there are none."""
    return ", ".join(
        f"{name} {old[name]} -> {new[name]}"
        for name in _IDENTITY
        if old.get(name) is not None and new.get(name) is not None and old[name] != new[name]
    )


def is_new_start(old: ServerFacts, new: ServerFacts) -> bool:
    """Return whether the process is another one: its times of starting, or its drawn seed."""
    return any(
        _differ(old.arguments[name], new.arguments[name])
        for name in _START_MARKS
        if name in old.arguments and name in new.arguments
    )


def _differ(old: object, new: object) -> bool:
    """Compare what both have: a server that still warms up has told only a part."""
    if isinstance(old, dict) and isinstance(new, dict):
        return any(_differ(old[key], new[key]) for key in old.keys() & new.keys())
    return old is not None and new is not None and old != new
