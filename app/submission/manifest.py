"""`manifest.json` of an output folder: what each gen_id stands for. Append-only.

Owns its layout. Runs that share a folder share the file. Invariant: an entry that is there is
never changed or removed, because lines point to it.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from app.clock import iso
from app.core.types import ServerFacts
from app.files.sealed import read_manifest, write_manifest

MANIFEST_NAME = "manifest.json"
_writing = threading.Lock()


def add_generation(
    output_dir: Path,
    gen_id: str,
    entry: Mapping[str, object],
    changes: Sequence[str],
    now: datetime,
) -> None:
    """Note a way of generating, and what it changed against the one before."""
    path = output_dir / MANIFEST_NAME
    with _writing:
        manifest = read_manifest(path) or {}
        listed = manifest.get("gen_ids")
        gen_ids = dict(listed) if isinstance(listed, dict) else {}
        if gen_id in gen_ids and not changes:
            return
        gen_ids.setdefault(gen_id, {**entry, "at": iso(now)})
        manifest["gen_ids"] = gen_ids
        if changes:
            before = manifest.get("changes")
            manifest["changes"] = [
                *(before if isinstance(before, list) else []),
                {"at": iso(now), "gen_id": gen_id, "run": entry.get("run"), "what": list(changes)},
            ]
        write_manifest(path, manifest)


def entry_of(
    run_name: str, parts: Mapping[str, object], facts: Mapping[str, ServerFacts]
) -> dict[str, object]:
    """Return what is written of a generation. Server facts hold no secrets from their origin."""
    return {
        "run": run_name,
        **parts,
        "servers": {url: asdict(each) for url, each in facts.items()},
    }
