"""What a run's training data takes on the disk, as one quiet line of its overview.

Owns what is said: tokens at the end with their range, merged bytes, and hidden states beside the
free space where the model's own config tells their size. Invariant: what is not known is not said;
before any answer is measured there is no line. Drawing is pure; reading asks disks with a limit of
time and is bounded, whatever the number of samples.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from app.core import format as words
from app.core.spec import from_json
from app.core.training_bytes import DISK_SHARE, HiddenStates, merged_bytes
from app.figures import RunFigures
from app.files.model_config import hidden_size_of
from app.files.space import free_bytes
from app.ledger import runs, servers
from app.sizing import sizes, tokens_band, total_tokens
from app.web.draft import Draft
from app.web.kinds import Desk
from app.web.sheet import Block

FRESH_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The figures; what nobody told is None.

    `band` holds the tokens in eight of ten cases. `is_least`: a partition has no measured answer.
    """

    n_tokens: int
    band: tuple[int, int] | None = None
    is_least: bool = False
    hidden_size: int | None = None
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    run_id: int


def disk(draft: Draft, run: RunFigures, known: Disk | None) -> Block:
    """Return the block; an empty one while nothing is known."""
    if known is None or not known.n_tokens:
        return Block(id="disk", template="overview/disk.html")
    draft.text("disk-says", said(known))
    return Block(id="disk", template="overview/disk.html", about=About(run_id=run.run_id))


def said(known: Disk) -> str:
    """Return the line.

    >>> said(Disk(n_tokens=251_000_000, band=(240_000_000, 262_000_000)))
    'Training data at the end: 251M tokens (240M to 262M) with prompts, 1.7 GB merged'
    """
    least = "at least " if known.is_least else ""
    low, high = known.band or (0, 0)
    between = f" ({words.tokens(low)} to {words.tokens(high)})" if known.band else ""
    line = (
        f"Training data at the end: {least}{words.tokens(known.n_tokens)} tokens{between}"
        " with prompts,"
        f" {words.size(merged_bytes(known.n_tokens))} merged"
    )
    if known.hidden_size is None:
        return line
    states = HiddenStates(hidden_size=known.hidden_size)
    needed = states.bytes_of(known.n_tokens)
    line += f"; hidden states (4 layers of {known.hidden_size:,}, bf16) {words.size(needed)}"
    if known.free_bytes is None:
        return line
    return f"{line}, of {words.size(known.free_bytes)} free{_verdict(known, states)}"


def _verdict(known: Disk, states: HiddenStates) -> str:
    """Return whether they fit; nothing as long as either may come."""
    usable = (known.free_bytes or 0) * DISK_SHARE
    low, high = known.band or (known.n_tokens, known.n_tokens)
    if states.bytes_of(low) > usable:
        return ": they do not fit"
    if known.is_least:
        return ""
    return ": they fit" if states.bytes_of(high) <= usable else ": they may not fit"


def read_disk(desk: Desk, run: RunFigures) -> Disk:
    """Return the figures as they were within the last minute."""

    def made() -> Disk:
        timeout_s = desk.service.settings.space_timeout_s
        parts = sizes(desk.ledger, run.run_id)
        return Disk(
            n_tokens=total_tokens(parts),
            band=tokens_band(parts),
            is_least=any(not each.n_measured for each in parts),
            hidden_size=hidden_size_of(_model_path(desk, run), timeout_s),
            free_bytes=free_bytes(Path(run.output_dir), timeout_s),
        )

    return desk.fresh.get(("disk", run.run_id), FRESH_S, made)


def _model_path(desk: Desk, run: RunFigures) -> str | None:
    """Return where the model lies, as the first of the run's servers said."""
    urls = from_json(runs.get_run(desk.ledger, run.run_id).spec_json).server_urls
    for view in servers.servers(desk.ledger):
        if view.url in urls:
            path = json.loads(view.facts_json).get("model_path")
            return path if isinstance(path, str) else None
    return None
