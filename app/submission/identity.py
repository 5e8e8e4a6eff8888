"""What a run's answers depend on, as it is stored and as it is now.

Owns the parts of `fingerprint_json`: what the run was started with, what its servers must say of
themselves, and which prompt files were seen. Comparing is `core/fingerprint.py`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from app.core.fingerprint import (
    GOLDEN,
    changed_names,
    differences,
    fingerprint,
    gen_id,
    gen_parts,
    identity_of,
)
from app.core.spec import RunSpec, to_json
from app.core.types import ServerFacts
from app.errors import InputError
from app.preflight import Report
from app.submission.prompt_digests import PROMPTS, SIZE_IN_MARK, prompt_digests

_SAME_IN_BOTH = frozenset({"model_path", "tokenizer_path", "weight_version"})
_DECIDES_IDS = ("model", "tokenizer", "chat_template_kwargs.", "max_new_tokens@")
REPLICAS = "samples_per_prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A run's settings that decide answers. `spec` has its partitions resolved."""

    spec: RunSpec
    facts: Mapping[str, ServerFacts]
    fingerprint: Mapping[str, object]
    servers: Mapping[str, object]
    seen: Mapping[str, list[int]]
    sizes: Mapping[str, int]

    @property
    def parts(self) -> dict[str, object]:
        return gen_parts(self.spec, self._first)

    @property
    def gen_id(self) -> str:
        return gen_id(self.parts)

    @property
    def spec_json(self) -> str:
        return to_json(self.spec)

    @property
    def as_json(self) -> str:
        return _stored(self.fingerprint, self.servers, self.seen)

    @property
    def _first(self) -> ServerFacts:
        return next(iter(self.facts.values()))


def identity_now(spec: RunSpec, report: Report, stored_json: str, now: datetime) -> Identity:
    """Return the identity of what was submitted, "{}" being stored of a new run.

    Reads every prompt file whole that the run has not seen as it is: take a thread.
    """
    if not report.facts:
        raise InputError("no server answered", hint="see the errors of the check")
    resolved = replace(spec, partitions=dict(report.partitions))
    first = next(iter(report.facts.values()))
    found = prompt_digests(report.prompts, stored_json, now)
    return Identity(
        spec=resolved,
        facts=report.facts,
        fingerprint=fingerprint(resolved, first, found.digests, report.golden),
        servers=identity_of(first),
        seen=found.seen,
        sizes=found.sizes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is not as it was; `names` are the fingerprint's.

    `prompts` has each partition whose file changed, with its bytes then and now where known.
    """

    sentences: tuple[str, ...]
    names: frozenset[str]
    prompts: Mapping[str, tuple[int | None, int | None]]

    @property
    def needs_new_ids(self) -> bool:
        """Prompts that were tokenized before would be other ids now, or have other limits."""
        return any(name.startswith(_DECIDES_IDS) for name in self.names)


def changes_since(stored_json: str, now: Identity, rescanned: frozenset[str]) -> Changes:
    """Compare with what is stored. The prompts of partitions scanned just now are no change."""
    stored = json.loads(stored_json)
    old = dict(stored.get("fingerprint") or {})
    for name in rescanned:
        old.pop(f"{PROMPTS}{name}", None)
    old_servers = {
        name: value
        for name, value in (stored.get("identity") or {}).items()
        if name not in _SAME_IN_BOTH and value is not None
    }
    new_servers = {
        name: value
        for name, value in now.servers.items()
        if name not in _SAME_IN_BOTH and value is not None
    }
    if not old_servers.get("version") or not new_servers.get("version"):
        old_servers = new_servers = {}  # one of the two did not say anything of itself
    names = frozenset(changed_names(old, now.fingerprint))
    apart = {name for name in names if name.startswith(PROMPTS)}
    settings = {name: value for name, value in old.items() if name not in apart}
    new_settings = {name: one for name, one in now.fingerprint.items() if name not in apart}
    sentences = [
        *differences(settings, new_settings),
        *(f"server's {said}" for said in differences(old_servers, new_servers)),
    ]
    seen = stored.get("seen") or {}
    prompts = {
        name: (_size(seen.get(name)), now.sizes.get(name))
        for name in (each.removeprefix(PROMPTS) for each in sorted(apart))
    }
    return Changes(sentences=tuple(sentences), names=names, prompts=prompts)


def _size(mark: list[int] | None) -> int | None:
    return mark[SIZE_IN_MARK] if mark else None


def merged(stored_json: str, now: Identity) -> str:
    """Return the identity to store: what is new, and partitions that only the run has."""
    stored = json.loads(stored_json)
    old = stored.get("fingerprint") or {}
    missing = {
        name: value
        for name, value in old.items()
        if ("@" in name or name == GOLDEN) and name not in now.fingerprint
    }
    seen = {
        name: mark
        for name, mark in (stored.get("seen") or {}).items()
        if f"{PROMPTS}{name}" in missing
    }
    return _stored({**now.fingerprint, **missing}, now.servers, {**now.seen, **seen})


def _stored(
    fingerprinted: Mapping[str, object],
    servers: Mapping[str, object],
    seen: Mapping[str, list[int]],
) -> str:
    return json.dumps({"fingerprint": fingerprinted, "identity": servers, "seen": seen})
