"""The report of a prepared partition, `report.json`.

Owns keys and their order. Invariant: the same files and spec give the same bytes; the only time in
it is that of the last change of a source's file, which stands for its content beside its size.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import orjson

from app.sources.hub import label_of
from app.sources.preparing import Job, Prepared
from app.sources.publishing import records_file
from app.sources.spec import SourceSpec


def report_of(job: Job, prepared: Prepared) -> dict[str, object]:
    """Return the report; `sources` are the files in reading order, or the dataset of the hub."""
    source, tally = job.source, prepared.tally
    return {
        "partition": source.name,
        "records": records_file(prepared.gives),
        "rows_in": tally.n_rows,
        "kept": tally.n_kept,
        "skipped": tally.in_order(),
        "characters": tally.characters(),
        "flags": dict(sorted(tally.flags.items())),
        "recipe": prepared.recipe,
        "recipe_was_recognised": prepared.is_recognised,
        "rows_by_other_recipes": dict(sorted(tally.other_recipes.items())),
        "mode": prepared.mode,
        "settings": _settings(source, job.seed),
        "sources": list(_sources(job)),
        "examples": tally.examples,
    }


def as_bytes(report: dict[str, object]) -> bytes:
    return orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _settings(source: SourceSpec, seed: int) -> dict[str, object]:
    return {
        "columns": source.columns,
        "rows": source.rows,
        "seed": None if source.rows is None else seed,
        "min_characters": source.min_characters,
        "max_characters": source.max_characters,
        "keep_control_tokens": source.keep_control_tokens,
    }


def _sources(job: Job) -> Iterable[dict[str, object]]:
    if job.source.hub is not None:
        yield {"hub": label_of(job.source.hub)}
    for file in job.files:
        facts = file.path.stat()
        changed_at = datetime.fromtimestamp(int(facts.st_mtime), UTC)
        yield {
            "file": file.label,
            "bytes": facts.st_size,
            "changed_at": changed_at.isoformat(timespec="seconds"),
        }
