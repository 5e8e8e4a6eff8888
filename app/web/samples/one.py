"""One sample as a sheet: its figures, its prompt, its answer, how it came to be. Pure.

Owns what stands on it and in which order. Invariant: text from prompts and answers is passed
through `visible` and drawn as text.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from app.core import format as words
from app.core.states import RETRYABLE
from app.core.visible import visible_line
from app.figures import RunFigures
from app.ledger.one_sample import SampleWhole
from app.web import head
from app.web.draft import Draft
from app.web.samples.history import History, history_of, n_forgiven
from app.web.samples.passages import Passage, answer_passages, passage
from app.web.samples.reading import MOST_IDS, Opened
from app.web.samples.saying import STATE_LOOKS, finish_word
from app.web.sheet import Block, Sheet
from app.web.wording import DASH


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Token ids, folded. `missing` says why there are none."""

    heading: str
    ids: str = ""
    left_out: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSample:
    """The whole page of a sample. Addresses are "" where there is nothing."""

    key: str
    look: str
    state: str
    reason: str
    partition: str
    list_address: str
    before: str
    behind: str
    retry: str
    raw: str
    facts: tuple[tuple[str, str, str], ...]
    prompt: tuple[Passage, ...]
    no_prompt: str
    prompt_ids: Ids
    answer: tuple[Passage, ...]
    no_answer: str
    answer_ids: Ids | None
    history: History


def sample_page(run: RunFigures, opened: Opened) -> Sheet:
    """Return the page of one sample."""
    draft = Draft(run.at)
    entry = opened.whole.entry
    base = f"/runs/{run.run_id}/samples"
    about = OneSample(
        key=visible_line(entry.key),
        look=STATE_LOOKS[entry.state],
        state=str(entry.state),
        reason=visible_line(entry.reason or ""),
        partition=opened.partition.name,
        list_address=base,
        before=f"{base}/{opened.before}" if opened.before else "",
        behind=f"{base}/{opened.behind}" if opened.behind else "",
        retry=f"{base}/{entry.id}/retry" if entry.state in RETRYABLE else "",
        raw=f"/api/v1/runs/{run.run_id}/samples/{entry.id}",
        facts=_facts(opened),
        prompt=_prompt(opened),
        no_prompt=opened.no_prompt,
        prompt_ids=_ids("Token ids of the prompt", opened.ids, entry.prompt_tokens, opened.no_ids),
        answer=answer_passages(opened.answer, opened.reasoning),
        no_answer=opened.no_answer,
        answer_ids=_answer_ids(opened.answer),
        history=history_of(draft, opened),
    )
    root = Block(
        id="page",
        template="samples/one_page.html",
        children=(
            head.signals(draft, run, "Samples", is_live=False),
            Block(id="sample", template="samples/one.html", about=about),
        ),
    )
    return draft.sheet(root, f"{visible_line(entry.key)[:60]} · {words.one_line(run.name)}")


def _facts(opened: Opened) -> tuple[tuple[str, str, str], ...]:
    """Return names, values, and why a value is a dash."""
    whole, answer = opened.whole, opened.answer or {}
    entry = whole.entry
    has_line = whole.line is not None
    facts = [
        ("Partition", opened.partition.name, ""),
        ("Record", words.whole(entry.index), ""),
        ("Prompt tokens", _whole(entry.prompt_tokens), "it was not tokenized"),
        ("Output tokens", words.whole(entry.output_tokens) if has_line else DASH, "no answer yet"),
        ("Most output tokens", words.whole(whole.max_new_tokens), ""),
        ("Finish", finish_word(entry.finish_reason) or DASH, "no answer yet"),
        ("Flags", ", ".join(map(visible_line, entry.flags)) or "none", ""),
        ("Attempts", _attempts(whole), ""),
    ]
    if entry.replica:
        facts.insert(2, ("Copy", words.whole(entry.replica + 1), ""))
    if entry.held_tokens:
        facts.append(("Held tokens", words.whole(entry.held_tokens), ""))
    if answer:
        facts.append(("Settings (gen_id)", visible_line(str(answer.get("gen_id", DASH))), ""))
    facts.append(("Prompt hash", whole.prompt_sha256 or DASH, "rejected before it was hashed"))
    return tuple(facts)


def _attempts(whole: SampleWhole) -> str:
    said = f"{whole.entry.attempt:,}, {whole.entry.charged:,} charged"
    return f"{said}, {n:,} forgiven" if (n := n_forgiven(whole)) else said


def _whole(n: int | None) -> str:
    return DASH if n is None else words.whole(n)


def _prompt(opened: Opened) -> tuple[Passage, ...]:
    prompt = opened.prompt
    if prompt is None:
        return ()
    if prompt.text is not None:
        return (passage("text", prompt.text),)
    if prompt.messages is None:
        return (Passage(heading="token ids", note="The record gives ids and no text."),)
    passages = [_message(each) for each in prompt.messages]
    if prompt.tools:
        passages.append(passage("tools", _as_json(prompt.tools)))
    return tuple(passages)


def _message(message: Mapping[str, object]) -> Passage:
    content = message.get("content")
    others = {key: value for key, value in message.items() if key not in ("role", "content")}
    text = content if isinstance(content, str) else ""
    if others:
        text = f"{text}\n{_as_json(others)}".lstrip("\n")
    return passage(visible_line(str(message.get("role", ""))), text)


def _as_json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _answer_ids(answer: Mapping[str, Any] | None) -> Ids | None:
    ids = (answer or {}).get("output_ids")
    if not isinstance(ids, list):
        return None
    return _ids("Token ids of the answer", ids[:MOST_IDS], len(ids), "")


def _ids(
    heading: str, ids: "array[int] | list[int] | None", total: int | None, missing: str
) -> Ids:
    if ids is None:
        return Ids(heading=heading, missing=missing)
    left_out = (total or len(ids)) - len(ids)
    return Ids(
        heading=f"{heading} ({words.whole(total)})",
        ids=" ".join(map(str, ids)),
        left_out=f"The first {len(ids):,}; {left_out:,} more." if left_out > 0 else "",
    )
