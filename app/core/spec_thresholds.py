"""The thresholds that stand in `[run]` of a spec: read by the table that `thresholds.py` holds."""

from dataclasses import fields
from typing import Any

from app.core.spec_checks import TableReader
from app.core.thresholds import RunThresholds


def read_thresholds(reader: TableReader) -> RunThresholds:
    """Return what a table says, defaults for what it leaves out; the reader notes problems."""
    values: dict[str, Any] = {}
    for one in fields(RunThresholds):
        if isinstance(one.default, bool):
            values[one.name] = reader.flag(one.name, default=one.default)
            continue
        bounds = (one.metadata["low"], one.metadata["high"])
        read = reader.whole if isinstance(one.default, int) else reader.number
        values[one.name] = read(one.name, one.default, *bounds)  # type: ignore[arg-type]  # each by its own type
    return RunThresholds(**values)
