"""What a run that is described in a browser may read, write and ask: nothing that was not allowed.

Owns the rule and its words. Roots and servers are set for the machine (sec-05, sec-06); servers of
earlier runs are allowed too, since somebody at the command line chose them. Paths are resolved
before they are compared, so that no `..` and no symbolic link leads out. Reads folders, writes
nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.core.spec import RunSpec
from app.errors import InputError
from app.files.prompts import find_prompts, list_partitions
from app.settings import PREFIX, Settings

PROMPTS_SETTING = f"{PREFIX}PROMPTS_ROOTS"
OUTPUT_SETTING = f"{PREFIX}OUTPUT_ROOTS"
SERVERS_SETTING = f"{PREFIX}SERVER_URLS"
Refused = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permitted:
    """Roots as they were set, and addresses of servers in their plain form."""

    prompts_roots: tuple[Path, ...] = ()
    output_roots: tuple[Path, ...] = ()
    server_urls: tuple[str, ...] = ()


def permitted(settings: Settings) -> Permitted:
    """Return what the settings of this machine allow."""
    urls = (word.strip().rstrip("/") for word in settings.server_urls.split(","))
    return Permitted(
        prompts_roots=_paths(settings.prompts_roots),
        output_roots=_paths(settings.output_roots),
        server_urls=tuple(dict.fromkeys(filter(None, urls))),
    )


def _paths(given: str) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(each) for each in given.split(":") if each))


def is_within(path: Path, roots: tuple[Path, ...]) -> bool:
    """Return whether a path, whatever links it takes, ends in or below one of the roots."""
    try:
        real = path.resolve()
        return any(real.is_relative_to(root.resolve(strict=True)) for root in roots)
    except (OSError, RuntimeError, ValueError):  # a root that is not there; a link to itself
        return False


def not_permitted(
    spec: RunSpec, allowed: Permitted, known_urls: frozenset[str] = frozenset()
) -> list[tuple[str, str]]:
    """Return (place in the spec, complaint) for everything that the spec may not touch."""
    return [*_folders(spec, allowed), *_servers(spec, allowed, known_urls)]


def outside(prompts: Mapping[str, Path], allowed: Permitted) -> list[str]:
    """Return a sentence for each prompt file that only looks as if it lay under a root."""
    return [
        f"the prompts of {name} are {path}, a link out of the folders that"
        f" {PROMPTS_SETTING} allows; put the file itself there"
        for name, path in prompts.items()
        if not is_within(path, allowed.prompts_roots)
    ]


def prompts_outside(spec: RunSpec, allowed: Permitted) -> list[str]:
    """Return what `outside` says of the files that a start would read now, where there are any."""
    found = {}
    folder = Path(spec.prompts_dir)
    try:
        names = list(spec.partitions) or list_partitions(folder)
    except InputError:
        return []
    for name in names:
        own = spec.partitions[name].prompts if name in spec.partitions else None
        try:
            found[name] = Path(own) if own else find_prompts(folder, name)
        except InputError:
            continue
    return outside(found, allowed)


def _folders(spec: RunSpec, allowed: Permitted) -> Refused:
    prompts = {"[run].prompts_dir": spec.prompts_dir}
    prompts |= {
        f"[partition.{name}].prompts": one.prompts
        for name, one in spec.partitions.items()
        if one.prompts
    }
    for place, given in prompts.items():
        if complaint := _refusal(given, allowed.prompts_roots, PROMPTS_SETTING):
            yield place, complaint
    if not _is_same(spec.output_dir, spec.prompts_dir) and (
        complaint := _refusal(spec.output_dir, allowed.output_roots, OUTPUT_SETTING)
    ):
        yield "[run].output_dir", f"{complaint}; the folder of the prompts itself is always allowed"


def _refusal(given: str, roots: tuple[Path, ...], setting: str) -> str:
    if not _is_whole(given):
        return f'"{given}" is not a whole path; begin it with /'
    if is_within(Path(given), roots):
        return ""
    listed = ", ".join(map(str, roots)) or f"none: {setting} is not set"
    return f'"{given}" does not lie under a folder that this service may use here ({listed})'


def _is_same(one: str, other: str) -> bool:
    if not (_is_whole(one) and _is_whole(other)):
        return False
    try:
        return Path(one).resolve() == Path(other).resolve()
    except (OSError, RuntimeError):  # a link to itself
        return False


def _is_whole(given: str) -> bool:
    return given.startswith("/") and "\0" not in given


def _servers(spec: RunSpec, allowed: Permitted, known_urls: frozenset[str]) -> Refused:
    may = {*allowed.server_urls, *known_urls}
    for url in spec.server_urls:
        if url not in may:
            yield (
                "[run].server_urls",
                f'"{url}" is no server that runs may use from here: nobody allowed it and no run'
                f" has used it; set {SERVERS_SETTING}={','.join([*allowed.server_urls, url])}"
                " for the service and start it again, or start this run at the command line",
            )
