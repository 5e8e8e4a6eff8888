"""The figures of a review: a row for each partition, a line for each server, and the totals.

Owns what is an estimate and how that is said. Pure. Invariant: tokens of prompts are estimates
from the first prompts that a server has tokenized, marked with ≈; where none has, they are not
shown.
"""

from dataclasses import dataclass

from app.core import format as words
from app.core.expected_output import Span, Wanted, answers_wanted, output_bytes, output_tokens
from app.preflight.report import Sampled
from app.submission import Checked, Planned
from app.web.wording import DASH


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """One partition; `length_about` says what the length is and where it comes from."""

    name: str
    file: str
    n_prompts: str
    n_rejected: int
    length: str
    length_about: str
    class_name: str
    concurrency: str
    max_new_tokens: str
    answers: str
    tokens: str
    limits: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    url: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All partitions together. `free` is "" where the file system does not say."""

    prompts: str
    rejected: str
    answers: str
    tokens: str
    disk: str
    free: str
    bytes_wanted: Span


def rows(checked: Checked) -> tuple[PlannedRow, ...]:
    return tuple(_row(checked, each) for each in checked.planned)


def totals(checked: Checked) -> Totals:
    spec, planned = checked.spec, checked.planned
    wanted = [_wanted(checked, each) for each in planned]
    n_bytes = output_bytes(wanted, spec.token_budget_tokens)
    free = checked.free_bytes
    return Totals(
        prompts=words.whole(sum(each.n_prompts for each in planned)),
        rejected=words.whole(sum(each.scan.n_rejected for each in planned)),
        answers=words.whole(sum(each.n_answers for each in wanted)),
        tokens=_tokens(output_tokens(wanted, spec.token_budget_tokens)),
        disk=f"{words.size(n_bytes.low)} – {words.size(n_bytes.high)}",
        free="" if free is None else words.size(free),
        bytes_wanted=n_bytes,
    )


def server_rows(checked: Checked) -> tuple[ServerRow, ...]:
    """Return what each server that answered said of itself; what it did not say is left out."""
    found = []
    for url, said in checked.report.facts.items():
        facts = (
            ("SGLang", said.version),
            ("model", said.model_path),
            ("context", _n(said.context_tokens, "tokens")),
            ("KV cache", _n(said.kv_capacity_tokens, "tokens")),
            ("at once", _n(said.max_running, "requests")),
        )
        known = tuple((name, words.one_line(one)) for name, one in facts if one)
        found.append(ServerRow(url=url, facts=known))
    return tuple(found)


def _n(n: int | None, unit: str) -> str:
    return "" if n is None else f"{n:,} {unit}"


def _row(checked: Checked, each: Planned) -> PlannedRow:
    limits, wanted = each.limits, _wanted(checked, each)
    shared = checked.spec.classes[limits.class_name].concurrency
    length, about = _length(each, checked.report.sampled.get(each.name))
    return PlannedRow(
        name=each.name,
        file=f"{each.path.name} · {words.size(each.size_bytes)}",
        n_prompts=words.whole(each.n_prompts),
        n_rejected=each.scan.n_rejected,
        length=length,
        length_about=about,
        class_name=limits.class_name,
        concurrency=f"{limits.concurrency:,}" if limits.concurrency else f"{shared:,} shared",
        max_new_tokens=f"{each.max_new_tokens:,}",
        answers=words.whole(wanted.n_answers),
        tokens=_tokens(output_tokens([wanted])),
        limits=_limits(each),
    )


def _wanted(checked: Checked, each: Planned) -> Wanted:
    return Wanted(
        n_answers=answers_wanted(
            each.n_prompts, checked.spec.samples_per_prompt, each.limits.max_samples
        ),
        max_new_tokens=each.max_new_tokens,
        budget_tokens=each.limits.token_budget_tokens,
    )


def _tokens(span: Span) -> str:
    low, high = words.tokens(span.low), words.tokens(span.high)
    return low if low == high else f"{low} – {high}"


def _limits(each: Planned) -> str:
    said = []
    if each.limits.token_budget_tokens is not None:
        said.append(f"budget {words.tokens(each.limits.token_budget_tokens)}")
    if each.limits.max_samples is not None:
        said.append(f"goal {each.limits.max_samples:,}")
    if each.limits.deadline:
        said.append(f"until {each.limits.deadline}")
    return " · ".join(said)


def _length(each: Planned, sampled: Sampled | None) -> tuple[str, str]:
    """Return median and longest prompt, and where the figures come from."""
    ids, texts = each.ids, each.characters
    if ids is not None and (texts is None or ids.n_prompts > texts.n_prompts):
        return f"median {ids.median:,}, longest {ids.longest:,} tokens", "given as ids"
    if texts is None:
        return DASH, "no prompt can be used"
    in_characters = f"{texts.median:,} and {texts.longest:,} characters"
    if sampled is None or not sampled.characters:
        return f"median and longest: {in_characters}", "nothing was tokenized yet"
    median, longest = (
        words.tokens(round(n * sampled.tokens / sampled.characters))
        for n in (texts.median, texts.longest)
    )
    first = words.plural(sampled.n_prompts, "prompt")
    about = f"{in_characters}; tokens counted as in the first {first}"
    return f"median ≈ {median}, longest ≈ {longest} tokens", about
