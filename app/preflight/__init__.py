"""What `check` and every start verify, all of it at once, before anything is begun.

Order: folders and ledger, prompt files, then the servers, then a sample of the prompts on them.
Starts nothing and changes nothing; probe files are removed again. While something of our own is
wrong, a server is looked at once and not waited for; while a folder cannot be written, no server
is asked at all (led-05).
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from app.clock import Clock
from app.core.spec import RunSpec
from app.core.types import ServerFacts
from app.preflight.folders import check_folders, check_outputs
from app.preflight.golden import check_golden
from app.preflight.prompt_files import FoundPrompts, find_partitions
from app.preflight.report import Findings, Report
from app.preflight.samples import check_samples
from app.preflight.servers import check_facts, reach
from app.settings import Settings
from app.sglang.client import ServerClient

__all__ = ["Report", "preflight"]


async def preflight(
    spec: RunSpec, settings: Settings, clock: Clock, say: Callable[[str], None]
) -> Report:
    """Return everything that a start would refuse, and everything worth knowing before it."""
    findings = Findings()
    await asyncio.to_thread(check_folders, spec, settings, findings)
    may_ask = not findings.errors
    found = await asyncio.to_thread(find_partitions, spec, findings)
    before = len(findings.errors)
    await asyncio.to_thread(check_outputs, spec, found.partitions, findings)
    may_ask = may_ask and len(findings.errors) == before
    facts: dict[str, ServerFacts] = {}
    if may_ask:
        async with AsyncExitStack() as stack:
            facts = await _ask(spec, settings, found, findings, (clock, say, stack))
    else:
        findings.notices.append("no server was asked, because folders cannot be written")
    return Report(
        errors=tuple(findings.errors),
        warnings=tuple(findings.warnings),
        notices=tuple(findings.notices),
        facts=facts,
        prompts=found.prompts,
        partitions=found.partitions,
        sampled=findings.sampled,
        golden=findings.golden,
    )


async def _ask(
    spec: RunSpec,
    settings: Settings,
    found: FoundPrompts,
    findings: Findings,
    tools: tuple[Clock, Callable[[str], None], AsyncExitStack],
) -> dict[str, ServerFacts]:
    clock, say, stack = tools
    key = settings.api_key.get_secret_value() if settings.api_key else None
    clients = [
        await stack.enter_async_context(ServerClient(url, api_key=key)) for url in spec.server_urls
    ]
    wait_s = 0.0 if findings.errors else spec.startup_wait_s
    facts = await reach(clients, wait_s, clock, say, findings)
    check_facts(spec, found.partitions, facts, findings)
    reached = [client for client in clients if client.url in facts]
    if reached:
        await check_golden([one for one in reached if facts[one.url].has_tokenizer], findings)
        await check_samples(spec, found, reached[0], list(facts.values()), findings)
    return facts
