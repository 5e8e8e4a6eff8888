"""A model's own config.json: what of it decides sizes on the disk.

Owns where the hidden size stands. A folder that is not there, or on another machine, tells nothing.
"""

import json
from pathlib import Path

from app.files.space import within


def hidden_size_in(found: object) -> int | None:
    """Return the hidden size of a parsed config, a text model's inside a larger one too.

    >>> hidden_size_in({"text_config": {"hidden_size": 4096}}), hidden_size_in([])
    (4096, None)
    """
    inner = found.get("text_config") if isinstance(found, dict) else None
    for part in (found, inner):
        size = part.get("hidden_size") if isinstance(part, dict) else None
        if type(size) is int and size > 0:
            return size
    return None


def hidden_size_of(model_path: str | None, timeout_s: float) -> int | None:
    """Return the hidden size of the model in a folder, None if unknown within the time."""
    if not model_path:
        return None
    path = Path(model_path) / "config.json"

    def ask() -> int | None:
        try:
            return hidden_size_in(json.loads(path.read_bytes()))
        except ValueError:
            return None

    return within(path, ask, timeout_s)
