"""What a server's counters say of it, as JSON values and back: part of the run's figures.

Owns nothing but the form: the key names are those of `ServerLoad`, which carry their units. Moments
are ISO 8601 with their offset. Invariant: what is not known is null, and comes back as None.
"""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from app.clock import iso
from app.core.loads import LoadSource, ServerLoad

Json = dict[str, Any]
_MOMENTS = frozenset({"at", "away_since", "started_at", "progressed_at"})
_NAMES = tuple(each.name for each in fields(ServerLoad))


def load_to_json(load: ServerLoad) -> Json:
    values = {name: getattr(load, name) for name in _NAMES}
    moments = {name: values[name] and iso(values[name]) for name in _MOMENTS}
    return {**values, **moments, "source": str(load.source)}


def load_from_json(value: Mapping[str, Any]) -> ServerLoad:
    """Return the load that another process sent; what a later version adds is left out."""
    known = {name: value[name] for name in _NAMES if name in value}
    moments = {
        name: known[name] and datetime.fromisoformat(known[name])
        for name in _MOMENTS & known.keys()
    }
    return ServerLoad(**{**known, **moments, "source": LoadSource(value["source"])})
