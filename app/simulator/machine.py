"""The simulated server as one object: settings, engine, script, counters and live requests.

Owns what the HTTP side asks and the control side changes; it is one life of a server process.
Invariant: a rid in `live` belongs to a request that is being answered at this moment; the value
ends it early, where it can be ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from app.clock import Clock
from app.simulator.answers import AnswerStream, prompt_end, prompt_seed
from app.simulator.counters import Counters, ServerFigures
from app.simulator.engine import Engine
from app.simulator.jobs import FaultOrder, Job, plan_answer, with_fault
from app.simulator.requests import GenerateRequest
from app.simulator.script import Script
from app.simulator.settings import SimulatorSettings, live_changes
from app.simulator.tokenizer import decode

ROW_KEY_CHARACTERS = 200


class Endpoints:
    """Fixed answers of other routes: [status, text], ["json", object] or ["text", text]."""

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = dict(answers or {})

    @property
    def context_length(self) -> int | None:
        """Return the context length that an overridden info route claims."""
        for path in ("/server_info", "/get_server_info"):
            kind, value = self.answers.get(path, (None, None))
            if kind == "json" and isinstance(value.get("context_length"), int):
                return int(value["context_length"])
        return None


class Machine:
    def __init__(
        self,
        settings: SimulatorSettings,
        clock: Clock,
        counters: Counters,
        *,
        die: Callable[[], None],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.counters = counters
        self.figures = ServerFigures()
        self.engine = Engine(settings, clock, counters, self.figures)
        self.script = Script()
        self.endpoints = Endpoints()
        self.live: dict[str, Callable[[], None] | None] = {}
        self.answered = 0
        self._own_context_length = settings.context_length
        self.die = die
        self.port = settings.port
        self.started_at = clock.now()

    def set_script(
        self, script: Script | None = None, endpoints: Mapping[str, Any] | None = None
    ) -> None:
        if script is not None:
            self.script = script
            self.answered = 0
        if endpoints is not None:
            self.endpoints = Endpoints(endpoints)
            # A claimed context length holds everywhere, for as long as it is claimed.
            claimed = self.endpoints.context_length or self._own_context_length
            self._apply({"context_length": claimed})

    def change(self, changes: dict[str, Any]) -> None:
        self._own_context_length = changes.get("context_length", self._own_context_length)
        self._apply(changes)

    def _apply(self, changes: dict[str, Any]) -> None:
        self.settings = replace(self.settings, **live_changes(changes))
        self.engine.change(self.settings)

    def row_of(self, input_ids: list[int]) -> tuple[str, str]:
        """Return (row, text): the user's text of a plain prompt, else the whole rendered text."""
        end = prompt_end(input_ids)
        text = decode(input_ids[:end], vocabulary_size=self.settings.vocabulary_size)
        inner = text.removesuffix("assistant:").removesuffix("\n")
        plain = inner != text and inner.startswith("user:")
        if plain and not any(f"\n{role}:" in inner for role in ("user", "assistant", "system")):
            text = inner.removeprefix("user:")
        if len(text) <= ROW_KEY_CHARACTERS:
            return text, text
        digest = prompt_seed(input_ids[:end]).hex()[:8]
        return f"{text[: ROW_KEY_CHARACTERS - 12]}...{digest}", text

    def make_job(self, request: GenerateRequest, fault: FaultOrder | None) -> Job:
        """Return the planned answer to a request that passed all checks."""
        settings, ids = self.settings, request.input_ids
        end = prompt_end(ids)
        start, seed = len(ids) - end, prompt_seed(ids[:end])
        room = settings.longest_request_tokens - len(ids) - 1
        asked = request.sampling.max_new_tokens
        limit = room if asked is None else min(asked, room)
        text = decode(ids[:end], vocabulary_size=settings.vocabulary_size)
        natural = settings.lengths.for_text(text).draw(seed) - start
        words = AnswerStream(seed, start, settings.vocabulary_size)
        plan = plan_answer(
            words, limit_tokens=limit, natural_tokens=max(1, natural), sampling=request.sampling
        )
        return Job(
            rid=request.rid,
            prompt_tokens=len(ids),
            seed=seed,
            words=words,
            plan=with_fault(plan, fault),
            limit_tokens=limit,
            interval_tokens=request.sampling.stream_interval_tokens
            or settings.stream_interval_tokens,
            stream=request.stream,
            keeps_to_limit=request.sampling.ignore_eos,
        )

    def abort(self, rid: str | None, *, everything: bool) -> None:
        """Abort as the scheduler does: a live rid takes its longer namesakes along."""
        self.figures.abort_calls += 1
        if not everything and (not rid or rid not in self.live):
            return
        for name, end_it in tuple(self.live.items()):
            if end_it is not None and (everything or name.startswith(rid or "")):
                end_it()
