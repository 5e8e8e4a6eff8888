"""Builds and runs the fast mock server (mock_sglang.c) on the second core, for one measurement."""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent


def built() -> Path:
    """Compile the mock once per machine; return the program."""
    target = Path(tempfile.gettempdir()) / "longwatch-mock-sglang"
    source = HERE / "mock_sglang.c"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["cc", "-O2", "-o", str(target), str(source)], check=True)  # noqa: S607 - whatever cc is
    return target


@contextlib.contextmanager
def mock(*flags: str) -> Iterator[str]:
    """Run the mock with these flags; yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pin = ["taskset", "-c", "1"] if shutil.which("taskset") else []
    process = subprocess.Popen([*pin, str(built()), "-p", str(port), *flags])
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
