"""Log files: folded, capped, with offsets, never in the way (case prc-04)."""

import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.core.types import SampleId, WorkerId
from app.events import AttemptFailed, WorkerStarted, log_event
from app.logs import FoldingHandler, configure_logging, kind_of

Opened = Callable[..., FoldingHandler]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Return a log in this test's folder; everything is put back afterwards."""
    root = logging.getLogger()
    level, raising, handlers = root.level, logging.raiseExceptions, []

    def make(name: str = "service.log", cap_mb: float = 20.0) -> FoldingHandler:
        handler = configure_logging(tmp_path / "logs" / name, cap_mb)
        handlers.append(handler)
        return handler

    yield make
    for handler in handlers:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
    logging.raiseExceptions = raising


def failed(n: int, reason: str = "HTTP 500: boom") -> AttemptFailed:
    return AttemptFailed(sample_id=SampleId(n), key=f"a{n}", attempt=1 + n % 2, reason=reason)


def total_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_prc_04_equal_errors_are_folded_and_counted(opened: Opened, tmp_path: Path) -> None:
    handler = opened()
    for n in range(20_000):
        log_event(failed(n))
    handler.close()
    lines = (tmp_path / "logs" / "service.log").read_text().splitlines()
    assert len(lines) < 10
    assert "key='a0'" in lines[0]
    assert "… 19,999 more like this: AttemptFailed" in lines[-1]


def test_prc_04_different_errors_are_all_told(opened: Opened, tmp_path: Path) -> None:
    handler = opened()
    log_event(failed(1))
    log_event(failed(2, reason="timed out"))
    logging.getLogger("longwatch").warning("SettleDelayed partition='B1' reason='locked'")
    logging.getLogger("longwatch").warning("SettleDelayed partition='B2' reason='locked'")
    handler.close()
    assert len((tmp_path / "logs" / "service.log").read_text().splitlines()) == 4


def test_prc_04_all_files_together_stay_under_the_cap(opened: Opened, tmp_path: Path) -> None:
    logger = logging.getLogger("longwatch")
    for process in range(12):
        handler = opened(f"worker-1-B{process}.log", cap_mb=0.2)
        for n in range(600):
            logger.info("state %s of something that is told at length: %s", n, "x" * 80)
        logging.getLogger().removeHandler(handler)
        handler.close()
        assert total_bytes(tmp_path / "logs") <= 200_000
    newest = tmp_path / "logs" / "worker-1-B11.log"
    assert "state 599 " in newest.read_text()


def test_old_files_of_others_make_room(opened: Opened, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for n in range(10):
        (folder / f"worker-{n}.log").write_bytes(b"x" * 50_000)
    handler = opened(cap_mb=0.2)
    log_event(WorkerStarted(worker_id=WorkerId(1), partition="B1", pid=7))
    handler.flush()
    assert total_bytes(folder) <= 200_000
    assert (folder / "service.log").exists()


def test_a_line_has_time_with_offset_level_process_and_event(
    opened: Opened, tmp_path: Path
) -> None:
    handler = opened("worker-1-B1.log")
    log_event(WorkerStarted(worker_id=WorkerId(4), partition="B1", pid=77))
    handler.flush()
    line = (tmp_path / "logs" / "worker-1-B1.log").read_text()
    pattern = (
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d INFO worker-1-B1\[\d+\] "
        r"WorkerStarted worker_id=4 partition='B1' pid=77\n"
    )
    assert re.fullmatch(pattern, line)


def test_a_full_disk_does_not_reach_whoever_logs(opened: Opened) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    handler = opened()
    handler.stream = full.open("w")
    handler.maxBytes = 0  # a device has no size to look at
    for n in range(3):
        log_event(failed(n))
        log_event(WorkerStarted(worker_id=WorkerId(n), partition="B1", pid=n))
    handler.close()


def test_numbers_do_not_make_messages_different_but_names_do() -> None:
    assert kind_of("gone after 12.5 s") == kind_of("gone after 3.0 s")
    assert kind_of("x partition='B1'") != kind_of("x partition='B2'")
