"""Ids that a record brings, against the ids that the server makes of the same record's text.

Owns the comparison before a run: up to 32 records of each partition, spread over its file, that
have `input_ids` beside `messages`, `conversations` or `text`. One difference stops a start. Where
a server cannot be asked, or a record has ids alone, nothing proves them, and that is said.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from app.core.format import plural
from app.core.id_differences import first_difference, neighbourhood
from app.errors import InputError, ServerAwayError
from app.files.prompt_records import Prompt, parse_record
from app.files.spread_lines import line_number, spread_lines
from app.preflight.report import Findings
from app.prompt_tokens import PromptTokens, Unusable

N_COMPARED = 32
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A record with ids, and the same record without: what the server is asked for."""

    offset: int
    ours: Prompt
    text: Prompt


async def compare_ids(
    name: str, path: Path, prompt_tokens: PromptTokens, findings: Findings
) -> None:
    """Compare a partition's own ids with the server's; a difference is an error."""
    if path.suffix == ".parquet":
        findings.notices.append(f"partition {name}: input_ids of Parquet files are not compared")
        return
    try:
        pairs, n_alone = await asyncio.to_thread(_read, path)
        if n_alone:
            findings.warnings.append(
                f"partition {name}: {plural(n_alone, 'looked-at record')} with input_ids without"
                " messages or text beside them; nothing proves that they are of this model's"
                " tokenizer"
            )
        if pairs:
            await _compare(name, path, pairs, prompt_tokens, findings)
    except ServerAwayError as error:
        findings.notices.append(f"partition {name}: input_ids were not compared ({error.message})")
    except (InputError, OSError):
        return  # a file that cannot be read is an error of its own


def _read(path: Path) -> tuple[list[_Pair], int]:
    """Return pairs, and how many of the records looked at have ids alone."""
    pairs: list[_Pair] = []
    n_alone = 0
    for line in spread_lines(path, N_COMPARED):
        try:
            record = orjson.loads(line.content)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(record, dict) or record.get("input_ids") is None:
            continue
        ours = parse_record(record, 0, 0)
        rest = {key: value for key, value in record.items() if key != "input_ids"}
        text = parse_record(rest, 0, 0)
        if isinstance(ours, Prompt) and isinstance(text, Prompt):
            pairs.append(_Pair(offset=line.offset, ours=ours, text=text))
        else:
            n_alone += isinstance(ours, Prompt)
    return pairs, n_alone


async def _compare(
    name: str,
    path: Path,
    pairs: Sequence[_Pair],
    prompt_tokens: PromptTokens,
    findings: Findings,
) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def ask(pair: _Pair) -> "Sequence[int] | Unusable":
        async with slots:
            return await prompt_tokens.of(pair.text)

    answers = await asyncio.gather(*(ask(pair) for pair in pairs))
    refused = [each for each in answers if isinstance(each, Unusable)]
    if refused:
        findings.warnings.append(
            f"partition {name}: {len(refused)} of {len(pairs)} records with input_ids could not be"
            f" compared with the server's ({refused[0].reason})"
        )
    for pair, theirs in zip(pairs, answers, strict=True):
        ours = pair.ours.input_ids
        if isinstance(theirs, Unusable) or ours is None:
            continue
        at = first_difference(ours, theirs)
        if at is not None:
            number = await asyncio.to_thread(line_number, path, pair.offset)
            findings.errors.append(
                f"partition {name}: {path}, line {number:,}: its input_ids are not what the server"
                f" makes of its text: first at position {at:,}, {neighbourhood(ours, at)} here,"
                f" {neighbourhood(theirs, at)} there; encode them with the server's tokenizer and"
                " chat_template_kwargs, or leave input_ids out"
            )
            return
    if len(refused) < len(pairs):
        findings.notices.append(
            f"partition {name}: the input_ids of {plural(len(pairs) - len(refused), 'record')} are"
            " the server's"
        )
