"""Who owns an output folder, and whether it can be written at all.

Owns `.longwatch.json` and the probe file. Invariants: two homes never write into one folder; two
runs of one home never write the same partition of it; a probe leaves nothing behind.
"""

import fcntl
import os
import pwd
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from app.errors import ConflictError, StorageError
from app.files.appending import make_folder, sync_folder
from app.files.replacing import replacing
from app.files.space import storage_error

OWNER_FILE = ".longwatch.json"
_PROBE = ".longwatch-probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    name: str
    partitions: list[str]


def claim_output(
    output_dir: Path, *, home: Path, run_id: int, run_name: str, partitions: Iterable[str] = ()
) -> None:
    """Write down that this run of this home owns these partitions of the folder.

    ConflictError names the home, or the run, that owns them already. Claiming again is free.
    """
    path = output_dir / OWNER_FILE
    try:
        make_folder(output_dir)
    except OSError as error:
        raise storage_error(output_dir, "make", error) from error
    with _locked(output_dir):
        _claim(path, home, str(run_id), run_name, sorted({*partitions}))


def check_claim(
    output_dir: Path, *, home: Path, run_id: int | None, partitions: Iterable[str]
) -> None:
    """Raise what `claim_output` would of other owners, None being a new run; write nothing."""
    path = output_dir / OWNER_FILE
    number = None if run_id is None else str(run_id)
    _refuse_shared(path, _runs_of_this_home(path, home), number, sorted({*partitions}))


def _claim(path: Path, home: Path, number: str, run_name: str, partitions: list[str]) -> None:
    runs = _runs_of_this_home(path, home)
    _refuse_shared(path, runs, number, partitions)
    runs[number] = _Run(name=run_name, partitions=partitions)
    owner = {"home": str(home.resolve()), "runs": runs}
    chunk = orjson.dumps(owner, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    with replacing(path) as file:
        file.write(chunk)


def _refuse_shared(
    path: Path, runs: dict[str, _Run], number: str | None, partitions: list[str]
) -> None:
    for other, run in runs.items():
        shared = [name for name in partitions if name in run.partitions]
        if other != number and shared:
            raise ConflictError(
                f'{path.parent} already holds {", ".join(shared)} of run {other} "{run.name}"',
                hint="resume that run, or choose another output folder",
            )


def _runs_of_this_home(path: Path, home: Path) -> dict[str, _Run]:
    """Return the runs that own the folder; ConflictError if they are another home's."""
    try:
        owner = orjson.loads(path.read_bytes())
        owner_home = owner["home"]
        runs = {number: _Run(**run) for number, run in owner["runs"].items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise storage_error(path, "read", error) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"{path} does not say who owns the folder", hint="remove it if nobody does"
        ) from error
    if owner_home != str(home.resolve()):
        names = ", ".join(f'"{run.name}"' for run in runs.values())
        raise ConflictError(
            f"{path.parent} belongs to the home {owner_home} (runs {names})",
            hint=f"use that home, choose another output folder, or remove {path} "
            "if that home is gone",
        )
    return runs


def probe_folder(path: Path) -> list[str]:
    """Return what keeps us from writing into a folder, each with path and missing right.

    Makes the folder if it is missing; writes, syncs, renames and removes a probe file.
    """
    probe, renamed = path / f"{_PROBE}-{os.getpid()}", path / f"{_PROBE}-{os.getpid()}-renamed"
    step, place = "make the folder", path
    try:
        make_folder(path)
        step, place = "create a file in", path
        with probe.open("wb") as file:
            step, place = "write to", probe
            file.write(b"probe\n")
            file.flush()
            step = "sync"
            os.fsync(file.fileno())
        step, place = "rename a file in", path
        probe.rename(renamed)
        step = "sync the folder"
        sync_folder(path)
        step = "remove a file from"
        renamed.unlink()
    except OSError as error:
        return [_problem(step, place, error), *_left_behind(probe, renamed)]
    return []


def probe_file(path: Path) -> list[str]:
    """Return what keeps us from replacing or extending a file that is already there."""
    try:
        facts = path.stat()
    except OSError as error:
        is_absent = isinstance(error, FileNotFoundError)
        return [] if is_absent else [_problem("look at", path, error)]
    if not path.is_file():
        return [f"{path} is not a regular file; move it away"]
    if os.geteuid() not in {0, facts.st_uid}:
        owner = _user(facts.st_uid)
        return [f"{path} belongs to the user {owner}; move it away or run as that user"]
    # Asked, not opened: closing any descriptor of a file drops all POSIX locks that this process
    # has on it, and with the ledger's go its protection against being checkpointed away.
    if not os.access(path, os.W_OK, effective_ids=True):
        mode = f"{facts.st_mode & 0o777:04o}"
        return [f"{path} has mode {mode}, the right to write is missing; chmod u+w it"]
    return []


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time claim; where a file system has no locks, go on without."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _problem(step: str, place: Path, error: OSError) -> str:
    """Return one sentence; for a missing right also the mode and owner of the folder."""
    said = f"cannot {step} {place}: {error.strerror}"
    if not isinstance(error, PermissionError):
        return said
    folder = next((one for one in (place, *place.parents) if _exists(one)), place)
    try:
        facts = folder.stat()
    except OSError:
        return said
    mode = f"{facts.st_mode & 0o777:04o}"
    owner, wanted = _user(facts.st_uid), _user(os.geteuid())
    return f"{said}; {folder} has mode {mode} and owner {owner}, {wanted} lacks the right to write"


def _left_behind(*probes: Path) -> list[str]:
    left = []
    for probe in probes:
        try:
            probe.unlink(missing_ok=True)
        except OSError as error:
            if _exists(probe):
                left.append(_problem("remove", probe, error))
    return left


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder above may not be entered
        return False


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
