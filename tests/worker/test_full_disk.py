"""The disk of the answers is full: no more is claimed, it is said, and nothing is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("plot", ["freed", "left"])
def test_answers_that_the_disk_does_not_take_are_kept_until_it_does(
    tmp_path: Path, plot: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.worker.small_disk", str(tmp_path), plot],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-3_000:]
