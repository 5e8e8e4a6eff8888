"""What must stay the same for answers to belong together, and the short name of it.

`fingerprint` is what a run was started with: stored before the first answer and compared at each
resume. `gen_id` names one way of generating (model, sampling, answer-changing server settings).
Invariant: concurrency, budgets, goals, timeouts and addresses never enter, so they change freely.
"""

import hashlib
import json
from collections.abc import Mapping

from app.core.golden import first_difference
from app.core.spec import RunSpec, resolve_partitions
from app.core.types import ServerFacts

GEN_ID_LENGTH = 12
_PART_MARK = "@"  # "max_new_tokens@B1_glaive": of one partition
_SERVER_KEYS = frozenset({"model", "weights", "tokenizer"})
GOLDEN = "tokenizer_golden"


def fingerprint(
    spec: RunSpec,
    facts: ServerFacts,
    inputs: Mapping[str, object],
    golden: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the settings by name, flat and ready for JSON.

    `inputs` holds for each partition what identifies its prompt file: a digest, or [size, digest].
    `golden` is `core/golden.py`'s mark of the server's tokenizer, None where none could be made.
    """
    found: dict[str, object] = {
        "model": facts.model_path,
        "weights": facts.weight_version,
        "tokenizer": facts.tokenizer_path,
        "samples_per_prompt": spec.samples_per_prompt,
    }
    if golden is not None:
        found[GOLDEN] = golden
    found |= dict(spec.sampling)
    found |= {f"chat_template_kwargs.{key}": one for key, one in spec.chat_template_kwargs.items()}
    for name, partition in resolve_partitions(spec, inputs).items():
        found[f"max_new_tokens{_PART_MARK}{name}"] = partition.max_new_tokens
    found |= {f"prompts{_PART_MARK}{name}": identity for name, identity in inputs.items()}
    return _plain(found)


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return what changed, as sentences for people: "temperature 0.7 -> 1.0".

    A partition that only one side has is no difference: nothing that exists changes by it.
    Nor is a fact of the server that one side does not know.
    """
    return [
        f"{_for_people(name)} changed"
        if name.startswith(f"prompts{_PART_MARK}")  # a digest says nothing to people
        else f"tokenizer: golden strings differ: first {first_difference(old[name], new[name])!r}"
        if name == GOLDEN
        else f"{_for_people(name)} {_shown(old.get(name))} -> {_shown(new.get(name))}"
        for name in changed_names(old, new)
    ]


def changed_names(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return the names of the settings that `differences` tells of."""
    names = [*old, *(name for name in new if name not in old)]
    return [
        name
        for name in names
        if _differs(name, old.get(name), new.get(name))
        and not (_PART_MARK in name and (name not in old or name not in new))
        and not (name in _SERVER_KEYS and (old.get(name) is None or new.get(name) is None))
    ]


def _differs(name: str, old: object, new: object) -> bool:
    if name == GOLDEN:
        return first_difference(old, new) is not None
    return _same_as_json(old) != _same_as_json(new)


def gen_parts(spec: RunSpec, facts: ServerFacts) -> dict[str, object]:
    """Return what decides an answer apart from its prompt and its length limit."""
    return {
        "model": facts.model_path,
        "weights": facts.weight_version,
        "tokenizer": facts.tokenizer_path,
        "sampling": dict(spec.sampling),
        "chat_template_kwargs": dict(spec.chat_template_kwargs),
        "server": dict(facts.answer_settings),
    }


def identity_of(facts: ServerFacts) -> dict[str, object]:
    """Return what each server of a run must say of itself for its answers to belong together."""
    return {
        "model_path": facts.model_path,
        "tokenizer_path": facts.tokenizer_path,
        "weight_version": facts.weight_version,
        "version": facts.version,
        **facts.answer_settings,
    }


def gen_id(parts: Mapping[str, object]) -> str:
    """Return 12 hexadecimal digits that name these parts, whatever their order."""
    return hashlib.sha256(_same_as_json(parts).encode()).hexdigest()[:GEN_ID_LENGTH]


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values as JSON would give them back, so that stored and fresh compare equal."""
    plain: dict[str, object] = json.loads(json.dumps(values))
    return plain


def _same_as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _for_people(name: str) -> str:
    setting, mark, partition = name.partition(_PART_MARK)
    return f"{setting} of {partition}" if mark else setting


def _shown(value: object) -> str:
    if type(value) is int:
        return f"{value:,}"
    shown = "not set" if value is None else value if isinstance(value, str) else json.dumps(value)
    return shown if len(shown) <= 100 else shown[:97] + "..."  # noqa: PLR2004 - one line
