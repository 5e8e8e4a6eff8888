"""What a run is asked to do: the values of a spec, their storage form, and who gets which limits.

Owns the dataclasses and their defaults. Reading TOML is `spec_parse`, reading flags `spec_flags`;
both report every problem at once as one `SpecError`. Paths are texts here; whoever read the file
resolves them. Invariant: a `RunSpec` that exists is valid by itself, whatever the server says.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from decimal import Decimal
from enum import StrEnum

from app.core.thresholds import RunThresholds, stored_thresholds

SHORT_PREFIXES = ("B1_", "B3_", "B6_", "B7_")
_PARTITION_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_TOKENS = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s*([kKmMgG]?)")
_SCALE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


class SpecError(ValueError):
    """A spec or a set of flags that cannot be run; holds every problem, one sentence each."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(f"{source}: {self.problems[0]}")
        else:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            super().__init__(f"{source}: {len(self.problems)} problems{lines}")


class Order(StrEnum):
    TOGETHER = "together"
    SEQUENCE = "sequence"


class LengthPolicy(StrEnum):
    """What to do with a prompt whose answer limit does not fit the context: shorten or reject."""

    CLAMP = "clamp"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSpec:
    """Limits that partitions share: `concurrency` is of the class, not of each partition."""

    concurrency: int
    max_new_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpec:
    """One partition's own limits; None: the class, the defaults or nobody decides."""

    class_name: str
    token_budget_tokens: int | None = None
    max_samples: int | None = None
    concurrency: int | None = None
    max_new_tokens: int | None = None
    prompts: str | None = None
    deadline: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Everything that was asked for. No partitions: all that are found in `prompts_dir`.

    `token_budget_tokens` is the run's; `default_token_budget_tokens` and `default_max_samples`
    hold for each partition that has none of its own. `deadline` is what was written ("08:00"): the
    moment that it means is fixed when the run begins.
    """

    name: str
    server_urls: tuple[str, ...]
    prompts_dir: str
    output_dir: str
    classes: Mapping[str, ClassSpec]
    partitions: Mapping[str, PartitionSpec] = field(default_factory=dict)
    sampling: Mapping[str, object] = field(default_factory=dict)
    chat_template_kwargs: Mapping[str, object] = field(default_factory=dict)
    samples_per_prompt: int = 1
    short_partitions: tuple[str, ...] = ()
    default_token_budget_tokens: int | None = None
    default_max_samples: int | None = None
    token_budget_tokens: int | None = None
    deadline: str | None = None
    order: Order = Order.TOGETHER
    max_attempts: int = 3
    request_timeout_s: float | None = None
    stop_grace_s: float = 0.0
    startup_wait_s: float = 300.0
    stall_after_s: float = 600.0
    stream_interval: int = 64
    vocabulary_size: int | None = None
    think_open_ids: tuple[int, ...] | None = None
    think_close_ids: tuple[int, ...] | None = None
    max_template_error_share: float = 0.5
    strict_ids: bool = False
    length_policy: LengthPolicy = LengthPolicy.CLAMP
    detect_loops: bool = True
    thresholds: RunThresholds = field(default_factory=RunThresholds)


def partition_name_problem(name: str) -> str | None:
    """Return why a partition cannot be called so, or None."""
    if _PARTITION_NAME.fullmatch(name):
        return None
    return (
        f'the partition name "{name}" is not usable: take letters, digits, ".", "_" and "-", '
        'at most 100, no "." at the start'
    )


def parse_tokens(value: object) -> int:
    """Return a number of tokens: 12000, "12_000", "10M", "2.5M", "800k". ValueError says why not.

    >>> parse_tokens("2.5M")
    2500000
    """
    remedy = 'write a whole number, or one with k, M or G: 250000, "800k", "10M", "2.5M"'
    if isinstance(value, bool) or not isinstance(value, int | str):
        # One kind of error for whatever was written: it comes from a file, not from code.
        raise ValueError(f"{_shown(value)} is not a number of tokens; {remedy}")  # noqa: TRY004 - ValueError is what callers turn into a problem
    found = _TOKENS.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(f"{_shown(value)} is not a number of tokens; {remedy}")
    tokens = Decimal(found[1].replace("_", "")) * _SCALE[found[2].lower()]
    if tokens < 1 or tokens != int(tokens) or tokens >= 2**53:
        raise ValueError(f"{_shown(value)} is not a whole number of tokens above 0; {remedy}")
    return int(tokens)


def default_class(classes: Iterable[str], short_partitions: Iterable[str], name: str) -> str | None:
    """Return the class of a partition that names none, or None if that cannot be told.

    The only class; or, where the classes are called short and long, short for the names that
    were said to be short or begin with B1_, B3_, B6_ or B7_.
    """
    known = list(classes)
    if len(known) == 1:
        return known[0]
    if set(known) != {"short", "long"}:
        return None
    return "short" if name in short_partitions or name.startswith(SHORT_PREFIXES) else "long"


def resolve_partitions(spec: RunSpec, found: Iterable[str]) -> dict[str, PartitionSpec]:
    """Return the partitions to run with every limit filled in, `concurrency` apart.

    `found` are the partitions in the prompts folder: all of them run if the spec names none.
    SpecError if the class of one cannot be told.
    """
    asked = spec.partitions or {name: _discovered(spec, name) for name in found}
    return {
        name: replace(
            partition,
            max_new_tokens=partition.max_new_tokens
            or spec.classes[partition.class_name].max_new_tokens,
            token_budget_tokens=partition.token_budget_tokens or spec.default_token_budget_tokens,
            max_samples=partition.max_samples or spec.default_max_samples,
        )
        for name, partition in asked.items()
    }


def _discovered(spec: RunSpec, name: str) -> PartitionSpec:
    class_name = default_class(spec.classes, spec.short_partitions, name)
    if class_name is None:
        known = ", ".join(spec.classes)
        remedy = f"add [partition.{name}] with class = one of: {known}"
        raise SpecError(spec.name, [f"partition {name} has no class; {remedy}"])
    return PartitionSpec(class_name=class_name)


def to_json(spec: RunSpec) -> str:
    """Return the form that is stored with the run."""
    return json.dumps(asdict(spec), ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> RunSpec:
    """Return the stored spec; keys that this version does not know are left out."""
    stored = json.loads(text)
    known = {one.name for one in fields(RunSpec)}
    values = {key: value for key, value in stored.items() if key in known}
    values["classes"] = {name: ClassSpec(**one) for name, one in stored["classes"].items()}
    values["partitions"] = {
        name: PartitionSpec(**one) for name, one in stored["partitions"].items()
    }
    for key in ("server_urls", "short_partitions", "think_open_ids", "think_close_ids"):
        if values.get(key) is not None:
            values[key] = tuple(values[key])
    values["order"] = Order(stored["order"])
    values["length_policy"] = LengthPolicy(stored["length_policy"])
    values["thresholds"] = stored_thresholds(stored.get("thresholds"))
    return RunSpec(**values)


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
