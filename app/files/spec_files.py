"""A spec file on the disk to a `RunSpec` with usable paths.

Owns reading the file, making its paths absolute (they are relative to the file's own folder) and
turning `SpecError`, which the pure floor raises, into `InputError`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from app.core.spec import RunSpec, SpecError
from app.core.spec_parse import parse_spec
from app.errors import InputError


@contextmanager
def spec_errors_as_input() -> Iterator[None]:
    """Let a spec, or flags, that cannot be run be an error of the input like any other."""
    try:
        yield
    except SpecError as error:
        raise InputError(str(error)) from error


def load_spec(path: Path) -> RunSpec:
    """Return the run that a TOML file asks for; InputError names everything that is wrong."""
    text = read_spec_text(path)
    with spec_errors_as_input():
        spec = parse_spec(text, str(path))
    return resolve_paths(spec, path.parent)


def read_spec_text(path: Path) -> str:
    """Return the text of a spec, its lines ended by line feeds alone."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 at byte {error.start}", hint="convert it") from error
    except OSError as error:
        raise InputError(
            f"cannot read the spec {path}: {error.strerror or error}", hint="check the path"
        ) from error
    return text.replace("\r\n", "\n")


def resolve_paths(spec: RunSpec, folder: Path) -> RunSpec:
    """Return the spec with its paths absolute, seen from a folder; symlinks stay as they are."""

    def absolute(text: str) -> str:
        return str((folder / Path(text).expanduser()).absolute())

    return replace(
        spec,
        prompts_dir=absolute(spec.prompts_dir),
        output_dir=absolute(spec.output_dir),
        partitions={
            name: replace(one, prompts=one.prompts and absolute(one.prompts))
            for name, one in spec.partitions.items()
        },
    )
