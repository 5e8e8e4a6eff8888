"""Log files: one per process under the home's `logs/`, folded and capped, safe on a full disk.

Owns the form of a line, the folding of equal warnings and errors (the first one, then how often it
came) and the cap over all files of the folder. What is logged is the callers' affair; prompts,
answers and keys never are. Invariant: files of the folder stay under the cap together, because
each process has a sixteenth of it and old files of dead processes are removed for new ones.
"""

import logging
import re
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

_PROCESSES = 16
_FILES_EACH = 2  # the present one and one before
_SAY_EVERY_S = 60.0
_MAX_KINDS = 1_000
_QUIET = ("httpx", "httpcore", "aiohttp", "asyncio", "alembic", "uvicorn.error", "uvicorn.access")
# what differs between equal events: who it happened to, and every number but those in names
_WHO = re.compile(r"\b(sample_id|key|rid|attempt|worker_id|pid|n_waiting)=('[^']*'|\"[^\"]*\"|\S+)")
_NUMBER = re.compile(r"(\b(?:partition|url)='[^']*')|\d+")


@dataclass(slots=True)
class _Kind:
    """How often a kind of message came, and what of that has been told."""

    first: str
    told_at_s: float
    n_more: int = 0
    n_told: int = 0


class FoldingHandler(RotatingFileHandler):
    """Writes the first message of a kind at once; later ones as counts, rarely."""

    def __init__(self, path: Path, cap_bytes: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._share_bytes = max(2_000, cap_bytes // _PROCESSES)
        self._cap_bytes = cap_bytes
        self._kinds: OrderedDict[tuple[int, str], _Kind] = OrderedDict()
        super().__init__(
            path,
            maxBytes=self._share_bytes // _FILES_EACH,
            backupCount=_FILES_EACH - 1,
            encoding="utf-8",
            errors="backslashreplace",
            delay=True,
        )
        self._make_room()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            super().emit(record)
            return
        key = (record.levelno, kind_of(record.getMessage()))
        kind = self._kinds.get(key)
        if kind is None:
            self._kinds[key] = _Kind(first=record.getMessage()[:200], told_at_s=record.created)
            super().emit(record)
            if len(self._kinds) > _MAX_KINDS:
                self._tell(*self._kinds.popitem(last=False), record.created)
            return
        kind.n_more += 1
        self._kinds.move_to_end(key)
        is_round = kind.n_more in (10, 100, 1_000, 10_000, 100_000, 1_000_000)
        if is_round or record.created - kind.told_at_s >= _SAY_EVERY_S:
            self._tell(key, kind, record.created)

    def _tell(self, key: tuple[int, str], kind: _Kind, at_s: float) -> None:
        if kind.n_more == kind.n_told:
            return
        kind.n_told, kind.told_at_s = kind.n_more, at_s
        text = f"… {kind.n_more:,} more like this: {kind.first}"
        record = logging.LogRecord("longwatch", key[0], "", 0, text, None, None)
        record.created = at_s
        super().emit(record)

    def doRollover(self) -> None:  # noqa: N802 - the library's name
        super().doRollover()
        self._make_room()

    def _make_room(self) -> None:
        """Remove the oldest files of others until this process's share fits under the cap."""
        own = {Path(self.baseFilename), Path(f"{self.baseFilename}.1")}
        with suppress(OSError):
            folder = Path(self.baseFilename).parent
            others = [(p.stat(), p) for p in folder.glob("*.log*") if p not in own]
            others.sort(key=lambda entry: entry[0].st_mtime)
            total = sum(facts.st_size for facts, _ in others)
            for facts, path in others:
                if total <= self._cap_bytes - self._share_bytes:
                    break
                path.unlink(missing_ok=True)
                total -= facts.st_size

    def close(self) -> None:
        """Tell what was not told yet; also called at the end of the process."""
        self.acquire()
        try:
            for key, kind in self._kinds.items():
                self._tell(key, kind, kind.told_at_s)
            self._kinds.clear()
        finally:
            self.release()
        with suppress(OSError):  # what a full disk did not take is lost, and that is all
            super().close()


class LineFormatter(logging.Formatter):
    """`2024-05-01T12:00:00.123+02:00 WARNING worker-B1 event key=value`."""

    def __init__(self, process: str) -> None:
        super().__init__(f"%(asctime)s %(levelname)s {process}[%(process)d] %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - the library's signature
        moment = datetime.fromtimestamp(record.created, UTC).astimezone()
        return moment.isoformat(timespec="milliseconds")


def kind_of(message: str) -> str:
    """Return what equal messages have in common.

    >>> kind_of("AttemptFailed sample_id=7 key='a7' attempt=1 partition='B1' reason='500 boom'")
    "AttemptFailed sample_id= key= attempt= partition='B1' reason='# boom'"
    """
    return _NUMBER.sub(lambda found: found[1] or "#", _WHO.sub(r"\1=", message))


def configure_logging(path: Path, cap_mb: float, level: int = logging.INFO) -> FoldingHandler:
    """Send this process's log to the file; `cap_mb` is for all files of its folder together."""
    handler = FoldingHandler(path, int(cap_mb * 1_000_000))
    handler.setFormatter(LineFormatter(path.stem))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.raiseExceptions = False  # a full disk must not end what only wanted to tell something
    return handler
