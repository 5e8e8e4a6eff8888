"""Whether home and output can be written, have room, and lie where a ledger may lie.

Owns which paths are looked at. A folder that is not there yet is judged by the nearest one above
it, so that a check leaves nothing behind.
"""

from collections.abc import Iterable
from pathlib import Path

from app.core.spec import RunSpec
from app.errors import LedgerError
from app.files.ownership import OWNER_FILE, probe_file, probe_folder
from app.files.space import free_bytes, is_network_filesystem
from app.ledger.migrate import known_revision_of
from app.preflight.report import Findings
from app.reports import FAILED_NAME, REJECTED_NAME
from app.settings import Settings

LEDGER_NAME = "ledger.db"
_ROOT_FILES = (OWNER_FILE, "manifest.json")
_PARTITION_FILES = ("responses.jsonl", REJECTED_NAME, FAILED_NAME)


def check_folders(spec: RunSpec, settings: Settings, findings: Findings) -> None:
    """Probe the home folder with its ledger, and the output folder."""
    home, output = settings.home.absolute(), Path(spec.output_dir).absolute()
    for folder in dict.fromkeys((nearest(home), nearest(output))):
        findings.errors += probe_folder(folder)
        _check_space(folder, settings, findings)
    kind = is_network_filesystem(nearest(home))
    if kind is not None:
        findings.errors.append(
            f"{home} lies on a network file system ({kind}), where a ledger can be damaged;"
            " take a --home on a local disk"
        )
    ledger = home / LEDGER_NAME
    problems = probe_file(ledger)
    findings.errors += problems
    if not problems:
        try:
            known_revision_of(ledger)
        except LedgerError as error:
            findings.errors.append(str(error))


def check_outputs(spec: RunSpec, partitions: Iterable[str], findings: Findings) -> None:
    """Probe what is already there of the output: folders of partitions, and files to replace."""
    output = Path(spec.output_dir).absolute()
    files = [output / name for name in _ROOT_FILES]
    for name in partitions:
        folder = output / name
        if _exists(folder):
            findings.errors += probe_folder(folder)
            files += [folder / file for file in _PARTITION_FILES]
    for file in files:
        findings.errors += probe_file(file)


def _check_space(folder: Path, settings: Settings, findings: Findings) -> None:
    free = free_bytes(folder, settings.space_timeout_s)
    if free is None:
        findings.warnings.append(
            f"the free space of {folder} is not known after {settings.space_timeout_s:g} s;"
            " its file system may be slow"
        )
    elif free < settings.disk_stop_bytes:
        findings.errors.append(
            f"{folder} has {free:,} bytes free, nothing is begun under"
            f" {settings.disk_stop_bytes:,}; free space there"
        )
    elif free < settings.disk_low_bytes:
        findings.warnings.append(f"{folder} has only {free:,} bytes free")


def nearest(path: Path) -> Path:
    """Return the path itself, or the nearest folder above it that is there."""
    return next((each for each in (path, *path.parents) if _exists(each)), path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder above may not be entered; that one is probed instead
        return False
