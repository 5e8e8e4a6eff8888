"""From what was asked for in a browser to a spec that may be checked, or to complaints.

Owns which servers may be chosen and what is looked at before anything is read. Reads the ledger
and folders below the roots; called from threads.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.spec import RunSpec, SpecError, partition_name_problem
from app.core.spec_parse import parse_spec, spec_of_tables
from app.errors import InputError
from app.files.prompt_folders import PromptFolder, look_into
from app.ledger import runs
from app.ledger.servers import servers
from app.submission import not_permitted, permitted
from app.submission.permitting import PROMPTS_SETTING, is_within
from app.web.kinds import Desk
from app.web.new_run.fields import (
    Asked,
    Complaints,
    complaints_of,
    merged,
    placed,
    tables_of,
)

SOURCE = "the spec"
MAX_NAME_CHARS = 80
_MOST_SERVERS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that may be chosen, and why it may be."""

    url: str
    why: str


def choosable_servers(desk: Desk) -> list[Server]:
    """Return the servers that runs begun in a browser may use."""
    allowed = permitted(desk.service.settings).server_urls
    known = [each.url for each in servers(desk.ledger) if each.url not in allowed]
    listed = [Server(url=url, why="set for this service") for url in allowed]
    return listed + [
        Server(url=url, why="used by an earlier run") for url in known[-_MOST_SERVERS:]
    ]


def chosen_folder(desk: Desk, wanted: str) -> PromptFolder:
    """Return the prompts folder of that path; InputError where it lies outside the roots.

    A folder outside is refused in the same words whether it is there or not (sec-05).
    """
    allowed = permitted(desk.service.settings)
    is_whole = wanted.startswith("/") and "\0" not in wanted
    if not is_whole or not is_within(Path(wanted), allowed.prompts_roots):
        raise InputError(
            f'"{wanted}" does not lie under a folder that prompts may be chosen from',
            hint=f"see /new for those that may; {PROMPTS_SETTING} sets them",
        )
    found = look_into(Path(wanted).resolve())
    if found.trouble:
        raise InputError(found.trouble)
    return found


def first_form(desk: Desk, folder: PromptFolder) -> Asked:
    """Return the form of a folder as it is first shown."""
    allowed = permitted(desk.service.settings)
    name = _free_name(desk, folder.path.name)
    roots = [root for root in allowed.output_roots if root.is_dir()]
    output_dir = roots[0] / _as_folder(name) if roots else folder.path
    names = [each.partition for each in folder.files]
    asked = Asked.first(str(folder.path), str(output_dir), name, names)
    choosable = choosable_servers(desk)
    if len(choosable) == 1:
        asked = Asked({**asked.values, "server_urls": (choosable[0].url,)})
    return asked


def _free_name(desk: Desk, wanted: str) -> str:
    """Return a name that no run has yet."""
    plain = " ".join(wanted.split())[:MAX_NAME_CHARS] or "run"
    taken = {run.name for run in runs.list_runs(desk.ledger)}
    n = 2
    name = plain
    while name in taken:
        name, n = f"{plain}-{n}", n + 1
    return name


def _as_folder(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "run"


def spec_of(desk: Desk, asked: Asked) -> RunSpec | Complaints:
    """Return the spec that was asked for, or everything that is wrong with it at first sight.

    Complaints about a pasted spec belong to no field; each begins with its place, `[run].name`.
    """
    names = asked.all("partition") if asked.spec_text is None else ()
    try:
        if asked.spec_text is not None:
            spec = parse_spec(asked.spec_text.replace("\r\n", "\n"), SOURCE)
        elif problem := _without_partitions(names):
            return problem
        else:
            spec = spec_of_tables(tables_of(asked), SOURCE)
    except SpecError as error:
        if asked.spec_text is not None:
            return Complaints(by_field={}, others=error.problems)
        return merged(complaints_of(error.problems, names), placed(_outside(desk, _bare(asked))))
    found = _outside(desk, spec)
    if asked.spec_text is not None:
        told = tuple(f"{place}: {complaint}" for place, complaint in found)
        return Complaints(by_field={}, others=told) if told else spec
    return placed(found, names) or spec


def _outside(desk: Desk, spec: RunSpec) -> list[tuple[str, str]]:
    known = frozenset(each.url for each in servers(desk.ledger))
    return not_permitted(spec, permitted(desk.service.settings), known)


def _bare(asked: Asked) -> RunSpec:
    """Return the folders and servers of a form alone, so that all complaints come at once."""
    return RunSpec(
        name=asked.get("name"),
        server_urls=asked.all("server_urls"),
        prompts_dir=asked.get("prompts_dir"),
        output_dir=asked.get("output_dir") or asked.get("prompts_dir"),
        classes={},
    )


def _without_partitions(names: Sequence[str]) -> Complaints | None:
    if not names:
        return Complaints(by_field={"partition": "no partition is chosen; tick one at least"})
    bad = [problem for name in names if (problem := partition_name_problem(name))]
    return Complaints(by_field={"partition": "; ".join(bad)}) if bad else None
