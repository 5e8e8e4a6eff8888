"""The first prompts of each partition on the server's tokenizer, before anything is generated.

Owns the share of refusals that stops a start, and the sample that is shown. Only `/tokenize` and
`/detokenize` are asked.
"""

import asyncio
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.format import plural
from app.core.prompt_limits import PromptLimits, answer_limit
from app.core.spec import RunSpec
from app.core.types import ServerFacts
from app.errors import ServerAwayError
from app.files.prompts import Prompt
from app.preflight.comparing import compare_ids
from app.preflight.prompt_files import FoundPrompts
from app.preflight.report import Findings, Sampled
from app.prompt_tokens import (
    PIECE_CHARACTERS,
    PromptTokens,
    Unusable,
    content_characters,
    limits_of,
    start_id_of,
)
from app.sglang.client import ServerClient
from app.sglang.protocol import version_tuple

_AT_ONCE = 8
_SHOWN_IDS = 12
_SHOWN_CHARACTERS = 80
_MESSAGES_SINCE = (0, 5, 12)
_TOKENIZE_SINCE = (0, 5, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    prompt: Prompt
    found: "array[int] | Unusable"


async def check_samples(
    spec: RunSpec,
    found: FoundPrompts,
    client: ServerClient,
    facts: Sequence[ServerFacts],
    findings: Findings,
) -> None:
    """Tokenize the samples; too many refusals, or ids that must not be sent, are errors."""
    limits, samples = limits_of(spec, facts), found.samples
    errors = _unable(samples, facts)
    if limits.vocabulary_size is None:
        errors += [
            f"partition {name} has raw input_ids, and the size of the vocabulary is not known;"
            " set vocabulary_size in [run]"
            for name, prompts in samples.items()
            if any(prompt.input_ids is not None for prompt in prompts)
        ]
    findings.errors += errors
    if errors:
        return
    try:
        prompt_tokens = PromptTokens(
            tokenize=client.tokenize,
            limits=limits,
            chat_template_kwargs=spec.chat_template_kwargs,
            start_id=await _start_id(samples, client),
        )
        for name, prompts in samples.items():
            tried = await _tokenized(prompts, prompt_tokens)
            _judge(name, tried, spec, findings)
            _measure(name, tried, findings)
            wanted = found.partitions[name].max_new_tokens or 1
            findings.warnings += _too_long(name, tried, wanted, limits)
            if name == next(iter(samples)):
                await _show(name, tried, client, findings)
        await _compare(found, client, prompt_tokens, facts, findings)
    except ServerAwayError as error:
        findings.errors.append(str(error))


async def _compare(
    found: FoundPrompts,
    client: ServerClient,
    prompt_tokens: PromptTokens,
    facts: Sequence[ServerFacts],
    findings: Findings,
) -> None:
    """Prove the ids that records bring, where the servers can apply their chat template."""
    with_ids = [
        name
        for name, prompts in found.samples.items()
        if any(prompt.input_ids is not None for prompt in prompts)
    ]
    versions = [version_tuple(each.version) or (999,) for each in facts]
    if with_ids and (
        min(versions) < _MESSAGES_SINCE or not all(each.has_tokenizer for each in facts)
    ):
        findings.notices.append(
            f"input_ids of {', '.join(with_ids)} were not compared: the server cannot encode chats"
        )
        return
    for name in with_ids:
        if prompt_tokens.start_id is None:
            prompt_tokens = replace(prompt_tokens, start_id=await start_id_of(client.tokenize))
        await compare_ids(name, found.prompts[name], prompt_tokens, findings)


def _unable(samples: Mapping[str, Sequence[Prompt]], facts: Sequence[ServerFacts]) -> list[str]:
    """Return why a server cannot tokenize what it would have to."""
    prompts = [prompt for each in samples.values() for prompt in each]
    has_chats = any(prompt.messages is not None for prompt in prompts)
    has_texts = has_chats or any(prompt.text is not None for prompt in prompts)
    problems = []
    for each in facts:
        version = version_tuple(each.version) or (999,)
        if has_texts and not each.has_tokenizer:
            problems.append(
                "the server was started with --skip-tokenizer-init and cannot tokenize prompts;"
                " start it without, or give input_ids"
            )
        elif has_texts and version < _TOKENIZE_SINCE:
            problems.append(f"SGLang {each.version} has no /tokenize; upgrade it to 0.5.12")
        elif has_chats and version < _MESSAGES_SINCE:
            problems.append(
                f"SGLang {each.version} cannot apply its chat template in /tokenize; upgrade it to"
                " 0.5.12 or newer, or give text or input_ids"
            )
    return list(dict.fromkeys(problems))


async def _start_id(samples: Mapping[str, Sequence[Prompt]], client: ServerClient) -> int | None:
    asks = any(prompt.input_ids is None for each in samples.values() for prompt in each)
    return await start_id_of(client.tokenize) if asks else None


async def _tokenized(prompts: Sequence[Prompt], prompt_tokens: PromptTokens) -> list[_Tried]:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(prompt: Prompt) -> _Tried:
        async with slots:
            return _Tried(prompt=prompt, found=await prompt_tokens.of(prompt))

    # Very long ones are told apart at intake; here they would only cost time.
    short = [prompt for prompt in prompts if content_characters(prompt) <= PIECE_CHARACTERS]
    return await asyncio.gather(*(one(prompt) for prompt in short))


def _judge(name: str, tried: Sequence[_Tried], spec: RunSpec, findings: Findings) -> None:
    refused = [each.found for each in tried if isinstance(each.found, Unusable)]
    if not refused:
        return
    if any(each.has_doubled_start for each in refused):
        findings.errors.append(f"partition {name}: {refused[0].reason}; mend the template")
        return
    reasons = list(dict.fromkeys(each.reason for each in refused))
    said = (
        f"partition {name}: {len(refused)} of the first {len(tried)} prompts will be rejected"
        f" ({'; '.join(reasons[:3])})"
    )
    if len(refused) > spec.max_template_error_share * len(tried):
        share = f"{spec.max_template_error_share:g}"
        findings.errors.append(f"{said}; more than max_template_error_share = {share}")
    else:
        findings.warnings.append(said)


def _measure(name: str, tried: Sequence[_Tried], findings: Findings) -> None:
    """Note how many tokens the texts of the samples come to; raw ids need no such measure."""
    lengths = [
        (content_characters(each.prompt), len(each.found))
        for each in tried
        if each.prompt.input_ids is None and not isinstance(each.found, Unusable)
    ]
    if lengths:
        characters, tokens = (sum(each) for each in zip(*lengths, strict=True))
        findings.sampled[name] = Sampled(
            n_prompts=len(lengths), characters=characters, tokens=tokens
        )


def _too_long(
    name: str, tried: Sequence[_Tried], max_new_tokens: int, limits: PromptLimits
) -> list[str]:
    verdicts = [
        answer_limit(limits, len(each.found), max_new_tokens)
        for each in tried
        if not isinstance(each.found, Unusable)
    ]
    too_long = [verdict for verdict in verdicts if isinstance(verdict, str)]
    return [
        f"partition {name}: {len(too_long)} of the first {len(tried)} prompts are too long"
        f" ({verdict})"
        for verdict in too_long[:1]
    ]


async def _show(
    name: str, tried: Sequence[_Tried], client: ServerClient, findings: Findings
) -> None:
    """Show how the first prompt begins, decoded, so that a person can see it."""
    found = next((each.found for each in tried if not isinstance(each.found, Unusable)), None)
    if found is None:
        return
    text = await client.detokenize(list(found[:_SHOWN_IDS]))
    decoded = "" if text is None else f", which begin {text[:_SHOWN_CHARACTERS]!r}"
    findings.notices.append(
        f"partition {name}: its first prompt has {plural(len(found), 'token')}{decoded}"
    )
