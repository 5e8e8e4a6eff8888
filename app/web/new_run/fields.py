"""The form of a new run: its fields to the tables of a spec, and complaints back to the fields.

Owns the names of the fields. Pure. What is typed becomes the tables that a spec file would have, so
that one reader checks both; a complaint of that reader finds its field by its place.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from urllib.parse import parse_qs

from app.core.numbers import typed_whole
from app.core.spec import default_class
from app.errors import InputError

CLASSES = ("short", "long")
_MOST_FIELDS = 20_000
_PLACE = re.compile(r"(\[[^\]]*\](?:\.\w+)?):? (.*)", re.DOTALL)
_PARTITION = re.compile(r"\[partition\.(.+)\]\.(\w+)")
_OF_RUN = ("name", "prompts_dir", "output_dir", "token_budget", "deadline")
_FIELDS = {f"[run].{name}": name for name in (*_OF_RUN, "server_urls")}
_FIELDS |= {
    f"[class.{one}].{key}": f"{one}_{key}"
    for one in CLASSES
    for key in ("concurrency", "max_new_tokens")
}
_FIELDS |= {f"[defaults].{key}": key for key in ("temperature", "top_p", "samples_per_prompt")}
DEFAULTS = {
    "short_concurrency": "150",
    "short_max_new_tokens": "10240",
    "long_concurrency": "32",
    "long_max_new_tokens": "16384",
    "temperature": "1.0",
    "top_p": "0.95",
    "samples_per_prompt": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaints:
    """What is wrong: `by_field` under the names of fields, `others` that belong to none."""

    by_field: Mapping[str, str]
    others: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by_field or self.others)


class Asked:
    """The fields of the form as they were typed."""

    def __init__(self, values: Mapping[str, tuple[str, ...]]) -> None:
        self.values = values

    @classmethod
    def of_body(cls, body: bytes) -> "Asked":
        """Read what a browser posted; InputError if it is no form."""
        try:
            found = parse_qs(
                body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS
            )
        except (UnicodeDecodeError, ValueError) as error:
            raise InputError("the form cannot be read", hint="reload the page") from error
        return cls({name: tuple(each) for name, each in found.items()})

    @classmethod
    def first(cls, prompts_dir: str, output_dir: str, name: str, names: Sequence[str]) -> "Asked":
        """Return the form as it is first shown: all partitions, each in its usual class."""
        values: dict[str, tuple[str, ...]] = {key: (one,) for key, one in DEFAULTS.items()}
        values |= {"prompts_dir": (prompts_dir,), "output_dir": (output_dir,), "name": (name,)}
        values["partition"] = tuple(names)
        for each in names:
            values[f"{each}:class"] = (default_class(CLASSES, (), each) or "long",)
        return cls(values)

    def get(self, name: str) -> str:
        """Return the last value of a field without spaces around it, "" for none."""
        return self.values.get(name, ("",))[-1].strip()

    def all(self, name: str) -> tuple[str, ...]:
        return self.values.get(name, ())

    @property
    def spec_text(self) -> str | None:
        """Return the spec that was pasted, None for a form that was filled in."""
        return self.values["spec"][-1] if "spec" in self.values else None


def tables_of(asked: Asked) -> dict[str, object]:
    """Return the tables of a spec that a filled form stands for; empty fields are left out."""
    chosen = {name: _partition(asked, name) for name in asked.all("partition")}
    used = {str(one.get("class")) for one in chosen.values()}
    return {
        "run": {name: asked.get(name) for name in _OF_RUN if asked.get(name)}
        | {"server_urls": list(asked.all("server_urls"))},
        "defaults": _without_empty(
            temperature=_number(asked.get("temperature")),
            top_p=_number(asked.get("top_p")),
            samples_per_prompt=_whole(asked.get("samples_per_prompt")),
        ),
        "class": {
            one: _without_empty(
                concurrency=_whole(asked.get(f"{one}_concurrency")),
                max_new_tokens=_whole(asked.get(f"{one}_max_new_tokens")),
            )
            for one in CLASSES
            if one in used or not chosen
        },
        "partition": chosen,
    }


def _partition(asked: Asked, name: str) -> dict[str, object]:
    return _without_empty(
        **{
            "class": asked.get(f"{name}:class"),
            "token_budget": asked.get(f"{name}:token_budget"),
            "max_samples": _whole(asked.get(f"{name}:max_samples")),
        }
    )


def complaints_of(problems: Iterable[str], partitions: Sequence[str] = ()) -> Complaints:
    """Return what a reader of specs has noted, each under the field that it is about.

    >>> complaints_of(['[class.short].concurrency: "x" is not a whole number']).by_field
    {'short_concurrency': '"x" is not a whole number'}
    >>> complaints_of(["[partition.B1].token_budget: no"], ["B1"]).by_field
    {'B1:token_budget': 'no'}
    >>> complaints_of(["[run].order: no"]).others
    ('[run].order: no',)
    """
    return placed(_split(problems), partitions)


def placed(found: Iterable[tuple[str, str]], partitions: Sequence[str] = ()) -> Complaints:
    """Return complaints with their places (`[run].name`) under the fields that they are about."""
    by_field: dict[str, str] = {}
    others = []
    for place, complaint in found:
        name = _FIELDS.get(place, "")
        if of_one := _PARTITION.fullmatch(place):
            name = f"{of_one[1]}:{of_one[2]}" if of_one[1] in partitions else ""
        if name:
            by_field[name] = f"{by_field[name]}; {complaint}" if name in by_field else complaint
        else:
            others.append(f"{place}: {complaint}" if place else complaint)
    return Complaints(by_field=by_field, others=tuple(others))


def merged(one: Complaints, other: Complaints) -> Complaints:
    """Return both; where a field has two complaints, the first."""
    return Complaints(
        by_field={**other.by_field, **one.by_field}, others=(*one.others, *other.others)
    )


def _split(problems: Iterable[str]) -> Iterator[tuple[str, str]]:
    for problem in problems:
        found = _PLACE.fullmatch(problem)
        yield (found[1], found[2]) if found else ("", problem)


def _without_empty(**values: object) -> dict[str, object]:
    return {name: one for name, one in values.items() if one != ""}


def _whole(text: str) -> int | str:
    """Return the number that was typed, else the text: the reader of specs says what is wrong."""
    n = typed_whole(text)
    return text if n is None else n


def _number(text: str) -> float | str:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if isfinite(value) else text
