"""Which partitions there are, where their prompts lie, and whether the files are whole.

Owns the choice between the spec's partitions and what lies in the prompts folder, and a first look
at the records. A file that two partitions would read is read by the first of them (inp-13).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from app.core.format import plural
from app.core.spec import PartitionSpec, RunSpec, SpecError, resolve_partitions
from app.errors import InputError
from app.files.prompt_streams import unpacked
from app.files.prompts import Prompt, Rejected, find_prompts, list_partitions, same_files, scan
from app.preflight.report import Findings

SAMPLE_RECORDS = 32
_PACKED = frozenset({".gz", ".zst"})
_SHOWN = 3


@dataclass(slots=True)
class FoundPrompts:
    """The partitions that can run, their prompt files, and the first records of each."""

    partitions: dict[str, PartitionSpec] = field(default_factory=dict)
    prompts: dict[str, Path] = field(default_factory=dict)
    samples: dict[str, list[Prompt]] = field(default_factory=dict)


def find_partitions(spec: RunSpec, findings: Findings) -> FoundPrompts:
    """Find every partition's prompts and read their beginning."""
    found = FoundPrompts()
    listed = _listed(spec, findings)
    try:
        asked = resolve_partitions(spec, listed)
    except SpecError as error:
        findings.errors += error.problems
        return found
    for name, partition in asked.items():
        try:
            path = _prompt_file(spec, name, partition)
            repeated = same_files({**found.prompts, name: path})
            if repeated:
                findings.notices.append(f"{repeated[0]}; it is run once, as part of that one")
                continue
            found.samples[name] = _first_records(name, path, findings)
        except InputError as error:
            findings.errors.append(str(error) + _others(name, listed))
            continue
        found.prompts[name] = path
        found.partitions[name] = partition
    return found


def _listed(spec: RunSpec, findings: Findings) -> list[str]:
    """Return the partitions of the prompts folder; an error only where the run depends on it."""
    try:
        listed = list_partitions(Path(spec.prompts_dir))
    except InputError as error:
        if not spec.partitions:
            findings.errors.append(str(error))
        return []
    if not listed and not spec.partitions:
        findings.errors.append(
            f"{spec.prompts_dir} holds no prompts; they are looked for as"
            " <partition>/prompts.jsonl or <partition>.jsonl (also .gz, .zst, .parquet)"
        )
    return listed


def _others(name: str, listed: Sequence[str]) -> str:
    return f"; there are {', '.join(listed)}" if listed and name not in listed else ""


def _prompt_file(spec: RunSpec, name: str, partition: PartitionSpec) -> Path:
    if partition.prompts is None:
        return find_prompts(Path(spec.prompts_dir), name)
    path = Path(partition.prompts)
    if not path.is_file():
        raise InputError(
            f"partition {name} has no prompt file {path}",
            hint=f"mend [partition.{name}] prompts",
        )
    return path


def _first_records(name: str, path: Path, findings: Findings) -> list[Prompt]:
    """Return the first usable prompts; InputError if the file is not whole or not readable."""
    if path.suffix in _PACKED:
        _unpack_whole(path)
    first = list(islice(scan(path), SAMPLE_RECORDS))
    rejected = [record for record in first if isinstance(record, Rejected)]
    if not first:
        findings.notices.append(f"partition {name}: {path} holds no prompts")
    if rejected and len(rejected) == len(first):
        findings.errors.append(
            f"none of the first {plural(len(first), 'record')} of {name} can be used (line"
            f" {rejected[0].line:,}: {rejected[0].reason}); mend {path}, or leave {name} out"
        )
    elif rejected:
        shown = "; ".join(f"line {each.line}: {each.reason}" for each in rejected[:_SHOWN])
        said = (
            f"partition {name}: {len(rejected)} of the first {len(first)} records"
            f" will be rejected ({shown})"
        )
        is_most = 2 * len(rejected) > len(first)
        (findings.warnings if is_most else findings.notices).append(said)
    return [record for record in first if isinstance(record, Prompt)]


def _unpack_whole(path: Path) -> None:
    """Prove that a packed file has its end, before anything is started (inp-11)."""
    with unpacked(path) as (plain, _):
        while plain.read(1 << 20):
            pass
