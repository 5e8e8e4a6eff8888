"""Rows of a dataset of the hub, through the library `datasets`.

Owns the only import of it, an optional extra, made when a source names a hub id and not before.
Invariants: rows come in the dataset's own order; what the library cannot do (no network, no such
dataset, a split that is missing) is an `InputError` that names the dataset and what to do.
"""

import os
from collections.abc import Iterator
from typing import Any

from app.errors import InputError
from app.sources.readers import Numbered, Position
from app.sources.spec import HubSpec
from app.sources.tables import numbered

_BATCH_ROWS = 256


def label_of(hub: HubSpec) -> str:
    """Return what records and reports call the dataset.

    >>> label_of(HubSpec(name="owner/name", config="all", revision="a1b2"))
    'owner/name:all/train@a1b2'
    """
    config = f":{hub.config}" if hub.config else ""
    revision = f"@{hub.revision}" if hub.revision else ""
    return f"{hub.name}{config}/{hub.split}{revision}"


def need_datasets(hub: HubSpec) -> Any:
    """Return the library; InputError says how to get it."""
    for name in ("HF_DATASETS_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_PROGRESS_BARS"):
        os.environ.setdefault(name, "1")  # several processes would draw over each other
    try:
        import datasets  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise InputError(
            f"hub = {hub.name} needs the library datasets",
            hint='install it (pip install "longwatch[hub]"), or download the files and give path',
        ) from error
    return datasets


def read_hub(hub: HubSpec, position: Position, *, only_a_look: bool = False) -> Iterator[Numbered]:
    """Yield every row, numbered from 1; for a look nothing but its beginning is downloaded."""
    datasets = need_datasets(hub)
    try:
        found = datasets.load_dataset(
            hub.name, hub.config, split=hub.split, revision=hub.revision, streaming=only_a_look
        )
    except Exception as error:  # the library raises whatever lies beneath: HTTP, values, pickles
        raise _refused(hub, error) from error
    n_rows = 0
    position.of_file = lambda: n_rows
    try:
        for batch in found.with_format("arrow").iter(batch_size=_BATCH_ROWS):
            yield from numbered(batch, n_rows)
            n_rows += batch.num_rows
    except (OSError, ValueError, RuntimeError) as error:
        raise _refused(hub, error) from error


def _refused(hub: HubSpec, error: Exception) -> InputError:
    said = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
    if isinstance(error, ConnectionError) or "offline" in said.lower():
        hint = "there is no way to the hub from here: download the files elsewhere and give path"
    else:
        hint = "check name, config, split and revision, or download the files and give path"
    return InputError(f"cannot read hub = {label_of(hub)}: {said}", hint=hint)
