"""Who has a file open: other programs by name, never this process or its children."""

import subprocess
import sys
from pathlib import Path

from app.files.openers import others_with

HOLD = "import sys; held = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
# the shell between makes it nobody's child of ours
ORPHAN = 'exec 3<"$1"; echo open; read -r line'


def test_a_child_of_ours_is_not_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    command = [sys.executable, "-c", HOLD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with path.open(), subprocess.Popen(command, text=True, **pipes) as child:  # type: ignore[call-overload]  # pipes
        assert child.stdout.readline() == "open\n"
        assert others_with(path) == ()
        child.stdin.close()


def test_a_stranger_is_named_with_its_pid(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    between = f"bash -c '{ORPHAN}' sh \"$1\"; true"
    command = ["bash", "-c", between, "bash", str(path)]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as between_us:
        assert between_us.stdout is not None
        assert between_us.stdin is not None
        assert between_us.stdout.readline() == "open\n"
        (told,) = others_with(path)
        assert told.startswith("bash (process ")
        between_us.stdin.close()
    assert others_with(path) == ()
