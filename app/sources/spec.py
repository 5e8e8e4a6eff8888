"""What `longwatch prepare` is asked to do: the tables [prepare] and [source.<name>] of a spec.

Owns their keys, defaults and checks; every problem of the file comes in one error. Paths are made
absolute, seen from the spec's own folder. Invariant: a `PrepareSpec` that exists is valid by
itself; whether its files are there is `finding`'s.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.core.spec import SpecError, partition_name_problem
from app.core.spec_checks import TableReader, as_shown, did_you_mean
from app.files.spec_files import read_spec_text, spec_errors_as_input
from app.sources.columns import column_problems
from app.sources.contract import Mode
from app.sources.known import all_recipes

MAX_ROWS = 10**9
MAX_CHARACTERS = 10**9
MAX_SEED = 2**63 - 1
MAX_PROCESSES = 256
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
_OF_HUB = ("config", "split", "revision")
_OF_PREPARE = ("output_dir", "seed", "deduplicate_across", "processes")
_OF_SOURCE = (
    "path", "hub", *_OF_HUB, "recipe", "mode", "columns", "rows", "min_characters",
    "max_characters", "keep_control_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSpec:
    """A dataset of the hub: `owner/name`, and which part of it."""

    name: str
    config: str | None = None
    split: str = "train"
    revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """One partition to prepare: where its rows are, how they are read, which are taken.

    Either `paths` (files and folders, absolute) or `hub`. `recipe` None: it is recognised.
    `mode` None: the recipe's. `rows` None: all. Lengths are characters of all messages together.
    """

    name: str
    paths: tuple[str, ...] = ()
    hub: HubSpec | None = None
    recipe: str | None = None
    mode: Mode | None = None
    columns: Mapping[str, str] | None = None
    rows: int | None = None
    min_characters: int = 1
    max_characters: int | None = None
    keep_control_tokens: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareSpec:
    """Everything that was asked for; `folder` is the spec's own, which labels are relative to."""

    folder: Path
    output_dir: Path
    sources: tuple[SourceSpec, ...]
    seed: int = 0
    deduplicate_across: bool = False
    processes: int = 1


def load_prepare_spec(path: Path) -> PrepareSpec:
    """Return what a TOML file asks for; InputError names everything that is wrong in it."""
    text = read_spec_text(path)
    with spec_errors_as_input():
        return parse_prepare_spec(text, str(path), path.parent.absolute())


def parse_prepare_spec(text: str, source: str, folder: Path) -> PrepareSpec:
    """Return what a TOML text asks for; `source` is only the name to print. SpecError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(source, [f"not valid TOML: {error}"]) from error
    except RecursionError as error:
        raise SpecError(source, ["not valid TOML: it is nested too deep"]) from error
    known = ("prepare", "source")
    problems = [
        f"[{key}] is not known here; {did_you_mean(key, known)}"
        for key in document
        if key not in known
    ]
    prepare = _table(document, "prepare", problems)
    reader = TableReader(prepare, "[prepare]", problems)
    output_dir = reader.text("output_dir", "prepared")
    seed = reader.whole("seed", 0, 0, MAX_SEED)
    across = reader.flag("deduplicate_across", default=False)
    processes = reader.whole("processes", cores(), 1, MAX_PROCESSES)
    reader.finish(lambda key: "[source.<name>]" if key in _OF_SOURCE else "")
    tables = _table(document, "source", problems)
    if not tables:
        remedy = 'add [source.B2_code] with path = "raw/code.jsonl"'
        problems.append(f"[source]: no source is defined; {remedy}")
    sources = [_source(name, one, folder, problems) for name, one in tables.items()]
    if problems:
        raise SpecError(source, list(dict.fromkeys(problems)))
    return PrepareSpec(
        folder=folder,
        output_dir=absolute(folder, output_dir),
        sources=tuple(one for one in sources if one is not None),
        seed=seed,
        deduplicate_across=across,
        processes=processes,
    )


def cores() -> int:
    """Return how many processes can work at once here."""
    return min(len(os.sched_getaffinity(0)), MAX_PROCESSES)


def absolute(folder: Path, text: str) -> Path:
    """Return the path seen from a folder; `..` and symlinks stay as they are."""
    return (folder / Path(text).expanduser()).absolute()


def _table(document: Mapping[str, object], name: str, problems: list[str]) -> Mapping[str, object]:
    value = document.get(name, {})
    if isinstance(value, dict):
        return value
    problems.append(f"[{name}] is not a table; write [{name}] on a line of its own")
    return {}


def _source(name: str, table: object, folder: Path, problems: list[str]) -> SourceSpec | None:
    place = f"[source.{name}]"
    if problem := partition_name_problem(name):
        problems.append(f"{place}: {problem}")
    if not isinstance(table, dict):
        problems.append(f"{place}: {as_shown(table)} is not a table")
        return None
    reader = TableReader(table, place, problems)
    columns = _columns(reader)
    shortest = reader.whole("min_characters", 1, 0, MAX_CHARACTERS)
    longest = reader.whole_or_none("max_characters", 1, MAX_CHARACTERS)
    if longest is not None and longest < shortest:
        reader.note("max_characters", f"{longest:,} is below min_characters, which is {shortest:,}")
    spec = SourceSpec(
        name=name,
        paths=tuple(str(absolute(folder, one)) for one in reader.texts("path") if one.strip()),
        hub=_hub(reader),
        recipe=_recipe(reader),
        mode=reader.one_of("mode", None, {one.value: one for one in Mode}),
        columns=columns,
        rows=reader.whole_or_none("rows", 1, MAX_ROWS),
        min_characters=shortest,
        max_characters=longest,
        keep_control_tokens=reader.flag("keep_control_tokens", default=False),
    )
    _check_place(reader)
    reader.finish(lambda key: "[prepare]" if key in _OF_PREPARE else "")
    return spec


def _check_place(reader: TableReader) -> None:
    """Note when there is no place to read from, or two; an empty path is none."""
    path, hub = reader.raw("path"), reader.raw("hub")
    if path is None and hub is None:
        reader.note("path", 'is missing; give path = "raw/rows.jsonl" or hub = "owner/name"')
    elif path is not None and hub is not None:
        reader.note("hub", "and path are both given; keep one")
    elif hub is None and not all(str(one).strip() for one in reader.texts("path") or ("",)):
        reader.note("path", f"{as_shown(path)} names no file")
    for key in _OF_HUB:
        if hub is None and reader.raw(key) is not None:
            reader.note(key, "belongs to a source with hub; files have none")


def _hub(reader: TableReader) -> HubSpec | None:
    name = reader.text_or_none("hub")
    config, revision = reader.text_or_none("config"), reader.text_or_none("revision")
    split = reader.text("split", "train")
    if name is None:
        return None
    if not _HUB_ID.fullmatch(name):
        reader.note("hub", f'{as_shown(name)} is not the name of a dataset such as "owner/name"')
    return HubSpec(name=name, config=config, split=split, revision=revision)


def _columns(reader: TableReader) -> dict[str, str] | None:
    """Return the mapping of the generic recipe."""
    table = reader.table("columns")
    if reader.raw("columns") is None:
        return None
    problems = column_problems(table)
    for key, complaint in problems:
        reader.note(f"columns.{key}" if key else "columns", complaint)
    return {key: str(value) for key, value in table.items()}


def _recipe(reader: TableReader) -> str | None:
    name = reader.text_or_none("recipe")
    if name is not None and name not in all_recipes():
        hint = did_you_mean(name, all_recipes())
        reader.note("recipe", f"{as_shown(name)} is not the name of a recipe; {hint}")
    elif name is not None and reader.raw("columns") is not None:
        reader.note("columns", "and recipe are both given; keep one")
    return name
