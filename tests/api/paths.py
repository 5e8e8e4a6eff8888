"""Every GET route of an OpenAPI document as a path to ask. Owns what stands for its words."""

from collections.abc import Mapping
from typing import Any

# without a partition a list of samples is refused where the run has several
_QUERIES = {"/api/v1/runs/{run}/samples": "?partition={partition}"}


def get_paths(document: Mapping[str, Any], **words: object) -> list[str]:
    """Return a path for each GET operation: `run`, `sample` and `partition` are filled in."""
    return [
        (path + _QUERIES.get(path, "")).format(**words)
        for path, operations in document["paths"].items()
        if "get" in operations
    ]
