"""Whether the servers are there, what they say of themselves, and whether the spec fits them.

Owns the waiting at a start: /health only, with growing gaps and a visible counter; /generate is
never touched (srv-25). A name that does not resolve is an error at once.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from app.clock import Clock
from app.core.fingerprint import identity_of
from app.core.prompt_limits import strictest
from app.core.spec import LengthPolicy, PartitionSpec, RunSpec
from app.core.spec_checks import server_urls
from app.core.types import ServerFacts
from app.errors import InputError, ServerAwayError, ServerError
from app.preflight.report import Findings
from app.sglang.client import ServerClient
from app.sglang.protocol import check_sampling

FIRST_GAP_S = 0.5
LONGEST_GAP_S = 5.0
TOLD_EVERY_S = 30.0
_GROWTH = 1.5
_OK = 200
_REFUSED_KEY = frozenset({401, 403})
# Ending a waiting stream ends these servers (SGLang issue 12414, mended in 0.5.5.post3).
_DIES_OF_ABORT = "0.5.4.post3"
_MAY_DIE_OF_ABORT = frozenset({"0.5.4.post1", "0.5.4.post2", "0.5.5", "0.5.5.post1", "0.5.5.post2"})

Say = Callable[[str], None]


async def reach(
    clients: Sequence[ServerClient], wait_s: float, clock: Clock, say: Say, findings: Findings
) -> dict[str, ServerFacts]:
    """Wait for the servers, all at once, and return what those say that came."""

    async def one(client: ServerClient) -> ServerFacts | str:
        try:
            await _check_address(client.url)
            await _wait_until_healthy(client, wait_s, clock, say)
            return await client.facts()
        except (InputError, ServerError) as error:
            return str(error)

    results = await asyncio.gather(*(one(client) for client in clients))
    facts: dict[str, ServerFacts] = {}
    problems: list[str] = []
    for client, result in zip(clients, results, strict=True):
        if isinstance(result, str):
            problems.append(result)
        else:
            facts[client.url] = result
    (findings.warnings if facts else findings.errors).extend(problems)
    return facts


async def _check_address(url: str) -> None:
    _, problems = server_urls([url])
    if problems:
        raise InputError(problems[0])
    parts = urlsplit(url)
    try:
        await asyncio.get_running_loop().getaddrinfo(
            parts.hostname, parts.port or parts.scheme, type=socket.SOCK_STREAM
        )
    except OSError as error:
        raise InputError(
            f"{url}: the name {parts.hostname} cannot be resolved ({error.strerror})",
            hint="Check the spelling and the name server",
        ) from error


async def _wait_until_healthy(client: ServerClient, wait_s: float, clock: Clock, say: Say) -> None:
    began_s = clock.monotonic()
    gap_s = FIRST_GAP_S
    told, told_s = "", 0.0
    while (seen := await _look(client)) is not None:
        waited_s = clock.monotonic() - began_s
        if wait_s <= 0:
            raise ServerAwayError(f"{client.url} {seen}", hint="Start the server first")
        if waited_s >= wait_s:
            raise ServerAwayError(
                f"{client.url} {seen}, after {waited_s:,.0f} s of waiting",
                hint="Start the server, or wait longer for it: [run] startup_wait_s in the spec",
            )
        if seen != told or waited_s - told_s >= TOLD_EVERY_S:
            say(f"waiting for {client.url}, {waited_s:,.0f} of {wait_s:,.0f} s: it {seen}")
            told, told_s = seen, waited_s
        await clock.sleep(min(gap_s, wait_s - waited_s))
        gap_s = min(LONGEST_GAP_S, gap_s * _GROWTH)


async def _look(client: ServerClient) -> str | None:
    """Return why the server is not ready, None if it is; ServerError if waiting cannot help."""
    try:
        status = await client.health()
    except ServerAwayError as error:
        return error.message.removeprefix(f"{client.url} ")
    if status in _REFUSED_KEY:
        raise ServerError(
            f"{client.url} refuses /health ({status})",
            hint="Set the server's key in the environment: LONGWATCH_API_KEY",
        )
    return None if status == _OK else f"is not ready (/health answers {status})"


def check_facts(
    spec: RunSpec,
    partitions: Mapping[str, PartitionSpec],
    facts: Mapping[str, ServerFacts],
    findings: Findings,
) -> None:
    """Compare the spec with what the servers say."""
    for url, said in facts.items():
        _check_version(url, said, findings)
        for key, value in spec.sampling.items():
            try:
                check_sampling({key: value}, said.version)
            except InputError as error:
                findings.errors.append(str(error))
        if said.context_tokens is None:
            findings.notices.append(
                f"{url} does not tell its limits: the context length is unknown, and prompts that"
                " are too long are refused by the server instead of before"
            )
    _check_same(facts, findings)
    _check_lengths(spec, partitions, list(facts.values()), findings)


def _check_version(url: str, said: ServerFacts, findings: Findings) -> None:
    if said.version == _DIES_OF_ABORT:
        findings.errors.append(
            f"{url} is SGLang {said.version}, which ends when a waiting stream is aborted;"
            " upgrade it to 0.5.5.post3 or newer"
        )
    elif said.version in _MAY_DIE_OF_ABORT:
        findings.warnings.append(
            f"{url} is SGLang {said.version}, which may end when a waiting stream is aborted;"
            " 0.5.5.post3 and newer do not"
        )


def _check_same(facts: Mapping[str, ServerFacts], findings: Findings) -> None:
    """Answers of one run come from one model, whichever server made them."""
    first: tuple[str, dict[str, object]] | None = None
    for url, said in facts.items():
        identity = identity_of(said)
        if first is None:
            first = url, identity
            continue
        names = [*first[1], *(name for name in identity if name not in first[1])]
        unlike = [
            f"{name} {first[1].get(name)} and {identity.get(name)}"
            for name in names
            if first[1].get(name) != identity.get(name)
        ]
        if unlike:
            findings.errors.append(f"{first[0]} and {url} differ: {', '.join(unlike)}")


def _check_lengths(
    spec: RunSpec,
    partitions: Mapping[str, PartitionSpec],
    facts: Sequence[ServerFacts],
    findings: Findings,
) -> None:
    limits = strictest(facts, spec.length_policy)
    if limits.usable_tokens is None:
        return
    for name, partition in partitions.items():
        wanted = partition.max_new_tokens or 0
        if wanted < limits.usable_tokens:
            continue
        said = (
            f"partition {name}: max_new_tokens {wanted:,} leaves no room for a prompt in the"
            f" context of {limits.context_tokens:,}"
        )
        if spec.length_policy is LengthPolicy.REJECT:
            findings.errors.append(f"{said}; every prompt would be rejected, lower it")
        else:
            findings.warnings.append(f"{said}; every answer gets what its prompt leaves")
