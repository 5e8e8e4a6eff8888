"""TOML to `RunSpec`: every problem of the file in one `SpecError`, with place, value and remedy.

Owns the names of tables and keys. Reads no file and resolves no path: `text` comes in, `source`
is only the name to print. Invariant: unknown keys are errors, never passed over, because a
misspelt limit that is silently absent costs a night.
"""

import tomllib
from collections.abc import Mapping

from app.core.spec import (
    ClassSpec,
    LengthPolicy,
    Order,
    PartitionSpec,
    RunSpec,
    SpecError,
    default_class,
    partition_name_problem,
)
from app.core.spec_checks import TableReader, as_shown, did_you_mean, server_urls
from app.core.spec_sampling import SAMPLING_KEYS, sampling_problems
from app.core.spec_thresholds import read_thresholds
from app.core.thresholds import THRESHOLD_KEYS

MAX_CONCURRENCY = 10_000
MAX_NEW_TOKENS = 10_000_000
MAX_SAMPLES = 10**9
MAX_SECONDS = 30 * 86_400
MAX_REPLICAS = 1_000
MAX_VOCABULARY = 2**32
_TABLES = ("run", "defaults", "class", "partition")
_OF_DEFAULTS = frozenset({"chat_template_kwargs", "samples_per_prompt"})
# For a key that stands in the wrong table. Tables that share a key are told as they are read.
_OF_RUN = frozenset({
    "name", "server_urls", "prompts_dir", "output_dir", "order", "max_attempts",
    "request_timeout_s", "stop_grace_s", "startup_wait_s", "stall_after_s", "stream_interval",
    "vocabulary_size", "think_open_ids", "think_close_ids", "max_template_error_share",
    "strict_ids", "length_policy", "detect_loops",
}) | THRESHOLD_KEYS  # fmt: skip
_PLACES = {
    "max_samples": "[defaults] or [partition.<name>]",
    "concurrency": "[class.<name>] or [partition.<name>]",
    "max_new_tokens": "[class.<name>] or [partition.<name>]",
    "token_budget": "[run], [defaults] or [partition.<name>]",
    "deadline": "[run] or [partition.<name>]",
    "class": "[partition.<name>]",
    "prompts": "[partition.<name>]",
}


def _belongs(key: str) -> str:
    """Return the tables that know a key, in words; nothing if none does."""
    if key in _OF_RUN:
        return "[run]"
    return "[defaults]" if key in _OF_DEFAULTS | SAMPLING_KEYS else _PLACES.get(key, "")


def parse_spec(text: str, source: str) -> RunSpec:
    """Return the run that a TOML text asks for. SpecError names everything that is wrong."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(source, [f"not valid TOML: {error}"]) from error
    except RecursionError as error:
        raise SpecError(source, ["not valid TOML: it is nested too deep"]) from error
    return spec_of_tables(document, source)


def spec_of_tables(document: Mapping[str, object], source: str) -> RunSpec:
    """Return the run that the tables of a spec ask for; see `parse_spec`."""
    problems = [
        f"[{key}] is not known here; {did_you_mean(key, _TABLES)}"
        for key in document
        if key not in _TABLES
    ]
    tables = {name: _table(document, name, problems) for name in _TABLES}
    classes = _classes(tables["class"], problems)
    values = _run_values(tables["run"], problems)
    values |= _defaults(tables["defaults"], problems)
    partitions = _partitions(tables["partition"], classes, problems)
    if problems:
        raise SpecError(source, problems)
    return RunSpec(classes=classes, partitions=partitions, **values)  # type: ignore[arg-type]  # each value was checked under its own name just above


def _table(document: Mapping[str, object], name: str, problems: list[str]) -> Mapping[str, object]:
    value = document.get(name, {})
    if not isinstance(value, dict):
        problems.append(f"[{name}] is not a table; write [{name}] on a line of its own")
        return {}
    return value


def _name(reader: TableReader) -> str:
    """Return the run's name; one with signs that turn or hide what stands beside it is none."""
    name = reader.text("name")
    hidden = next((each for each in name if not each.isprintable()), None)
    if hidden is not None:
        reader.note("name", f"holds U+{ord(hidden):04X}, which cannot be shown; leave it out")
    return name


def _run_values(table: Mapping[str, object], problems: list[str]) -> dict[str, object]:
    reader = TableReader(table, "[run]", problems)
    values: dict[str, object] = {
        "name": _name(reader),
        "server_urls": _server_urls(reader),
        "prompts_dir": reader.text("prompts_dir"),
        "output_dir": reader.text("output_dir"),
        "order": reader.one_of("order", Order.TOGETHER, {one.value: one for one in Order}),
        "token_budget_tokens": reader.tokens_or_none("token_budget"),
        "deadline": reader.deadline_or_none("deadline"),
        "max_attempts": reader.whole("max_attempts", 3, 1, 100),
        "request_timeout_s": _seconds_or_none(reader, "request_timeout_s"),
        "stop_grace_s": reader.number("stop_grace_s", 0, 0, MAX_SECONDS),
        "startup_wait_s": reader.number("startup_wait_s", 300, 0, MAX_SECONDS),
        "stall_after_s": reader.number("stall_after_s", 600, 1, MAX_SECONDS),
        "stream_interval": reader.whole("stream_interval", 64, 1, 100_000),
        "vocabulary_size": reader.whole_or_none("vocabulary_size", 1, MAX_VOCABULARY),
        "think_open_ids": reader.ids_or_none("think_open_ids"),
        "think_close_ids": reader.ids_or_none("think_close_ids"),
        "max_template_error_share": reader.number("max_template_error_share", 0.5, 0, 1),
        "strict_ids": reader.flag("strict_ids", default=False),
        "length_policy": reader.one_of(
            "length_policy", LengthPolicy.CLAMP, {one.value: one for one in LengthPolicy}
        ),
        "detect_loops": reader.flag("detect_loops", default=True),
        "thresholds": read_thresholds(reader),
    }
    reader.finish(_belongs)
    return values


def _server_urls(reader: TableReader) -> tuple[str, ...]:
    if reader.raw("server_urls") in (None, []):
        reader.note("server_urls", 'is missing; give a list such as ["http://localhost:30000"]')
        return ()
    plain, complaints = server_urls(reader.texts("server_urls"))
    for complaint in complaints:
        reader.note("server_urls", complaint)
    return plain


def _seconds_or_none(reader: TableReader, key: str) -> float | None:
    return None if reader.raw(key) is None else reader.number(key, 1, 0.1, MAX_SECONDS)


def _defaults(table: Mapping[str, object], problems: list[str]) -> dict[str, object]:
    reader = TableReader(table, "[defaults]", problems)
    values: dict[str, object] = {
        "chat_template_kwargs": dict(reader.table("chat_template_kwargs")),
        "samples_per_prompt": reader.whole("samples_per_prompt", 1, 1, MAX_REPLICAS),
        "default_token_budget_tokens": reader.tokens_or_none("token_budget"),
        "default_max_samples": reader.whole_or_none("max_samples", 1, MAX_SAMPLES),
    }
    own = _OF_DEFAULTS | {"token_budget", "max_samples"}
    sampling = {key: value for key, value in table.items() if key not in own}
    for key, complaint in sampling_problems(sampling, also_known=own):
        place = _belongs(key)
        elsewhere = place and place != "[defaults]"
        reader.note(key, f"belongs in {place}" if elsewhere else complaint)
    # An empty list asks for nothing; left out, the fingerprint does not see it either.
    values["sampling"] = {
        key: value for key, value in sampling.items() if key in SAMPLING_KEYS and value != []
    }
    return values


def _classes(table: Mapping[str, object], problems: list[str]) -> dict[str, ClassSpec]:
    if not table:
        remedy = "add [class.long] with concurrency = 32 and max_new_tokens = 16384"
        problems.append(f"[class]: no class is defined; {remedy}")
    classes = {}
    for name, value in table.items():
        place = f"[class.{name}]"
        if not isinstance(value, dict):
            problems.append(f"{place}: {as_shown(value)} is not a table")
            continue
        reader = TableReader(value, place, problems)
        classes[name] = ClassSpec(
            concurrency=_class_concurrency(reader),
            max_new_tokens=reader.required_whole("max_new_tokens", 1, MAX_NEW_TOKENS),
        )
        reader.finish(_belongs)
    return classes


def _class_concurrency(reader: TableReader) -> int:
    if reader.raw("concurrency") == "auto":
        reader.note("concurrency", '"auto" is not available yet; give a number such as 32')
        return 1
    return reader.required_whole("concurrency", 1, MAX_CONCURRENCY)


def _partitions(
    table: Mapping[str, object], classes: Mapping[str, ClassSpec], problems: list[str]
) -> dict[str, PartitionSpec]:
    partitions = {}
    for name, value in table.items():
        place = f"[partition.{name}]"
        if problem := partition_name_problem(name):
            problems.append(f"{place}: {problem}")
        if not isinstance(value, dict):
            problems.append(f"{place}: {as_shown(value)} is not a table")
            continue
        partitions[name] = _partition(name, TableReader(value, place, problems), classes)
    return partitions


def _partition(name: str, reader: TableReader, classes: Mapping[str, ClassSpec]) -> PartitionSpec:
    class_name = reader.text_or_none("class") or default_class(classes, (), name)
    if class_name is None:
        reader.note("class", f"is missing; choose one of {', '.join(classes)}")
    elif classes and class_name not in classes:
        hint = did_you_mean(class_name, classes)
        reader.note("class", f"there is no [class.{class_name}]; {hint}")
    spec = PartitionSpec(
        class_name=class_name or "",
        token_budget_tokens=reader.tokens_or_none("token_budget"),
        max_samples=reader.whole_or_none("max_samples", 1, MAX_SAMPLES),
        concurrency=reader.whole_or_none("concurrency", 1, MAX_CONCURRENCY),
        max_new_tokens=reader.whole_or_none("max_new_tokens", 1, MAX_NEW_TOKENS),
        prompts=reader.text_or_none("prompts"),
        deadline=reader.deadline_or_none("deadline"),
    )
    reader.finish(_belongs)
    return spec
