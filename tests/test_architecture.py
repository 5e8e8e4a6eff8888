"""The rules of the code that no linter holds: floors, lengths, the picture, settings, paths."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.states import sample_diagram
from app.settings import Settings

ROOT = Path(__file__).parents[1]
APP = ROOT / "app"
MODULES = sorted(APP.rglob("*.py"))
LONGEST_MODULE = 250
# Longer ones, each with its argument; none may grow past what is said here.
LONGER = {
    "app/ledger/tables.py": (325, "the whole schema is read at one glance"),
    "app/core/types.py": (275, "the values that every floor hands on, one place to look"),
}
# Written so that this file does not hold it.
PLACE_OF_THIS_MACHINE = re.compile(r"(?<![\w./~-])/" + "work" + r"/\w")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_floors_import_downwards_only() -> None:
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert command is not None, "import-linter is part of the dev extra"

    result = subprocess.run(
        [command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )

    assert result.returncode == 0, result.stdout + result.stderr


def test_only_the_ledger_imports_sql_libraries() -> None:
    found = {
        name_of(path)
        for path in MODULES
        if path.parent != APP / "ledger" and _imports(path) & {"sqlalchemy", "sqlmodel", "alembic"}
    }

    assert found == set()


def _imports(path: Path) -> set[str]:
    """Return the top names of everything that a module imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_the_core_imports_itself_and_the_standard_library_only() -> None:
    foreign = {
        name_of(path): strangers
        for path in (APP / "core").rglob("*.py")
        if (strangers := _imports(path) - sys.stdlib_module_names - {"app"})
    }

    assert foreign == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_and_says_what_it_owns(path: Path) -> None:
    text = path.read_text()
    limit, _ = LONGER.get(name_of(path), (LONGEST_MODULE, ""))

    assert len(text.splitlines()) <= limit
    assert ast.get_docstring(ast.parse(text))


def test_no_argument_for_a_long_module_is_left_over() -> None:
    short = {
        name for name in LONGER if len((ROOT / name).read_text().splitlines()) <= LONGEST_MODULE
    }

    assert short == set()


def test_the_picture_in_the_readme_is_the_table_of_states() -> None:
    readme = (ROOT / "README.md").read_text()

    pictures = re.findall(r"```mermaid\n(stateDiagram-v2\n.*?)\n```", readme, re.DOTALL)

    assert pictures == [sample_diagram()], f"put this into README.md:\n{sample_diagram()}"


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_says_what_it_is(name: str) -> None:
    description = Settings.model_fields[name].description

    assert description
    assert len(description) > len(name) // 2
    assert description != name


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: nothing says which files are tracked")
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - git is where the checkout came from
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_no_tracked_file_names_a_place_of_one_machine() -> None:
    found = {
        name_of(path): line
        for path in tracked_files()
        if path.is_file()
        for line in path.read_bytes().decode("utf-8", "replace").splitlines()
        if PLACE_OF_THIS_MACHINE.search(line)
    }

    assert found == {}


def test_no_lock_of_another_tool_is_tracked() -> None:
    names = {path.name for path in tracked_files()}

    assert not names & {"uv.lock", "poetry.lock", "Pipfile.lock"}
    assert "requirements.lock" in names
