"""Plays the scripted answers: what a test wants a server to say, however odd.

Owns the default answer ("TU", ids 87, 88, 2), merging into it, and the ways of breaking off.
A scripted answer uses no engine and no pool; its `prompt_tokens` is the number of ids received.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from app.simulator.answers import AnswerStream, prompt_end, prompt_seed
from app.simulator.connection import Connection
from app.simulator.counters import RequestEntry
from app.simulator.machine import Machine
from app.simulator.model_answers import SETTLE_S, ModelAnswer, send_half
from app.simulator.replies import (
    JSON_HEADER,
    Send,
    end_stream,
    send_body,
    send_done,
    send_event,
    send_json,
    start_stream,
)
from app.simulator.requests import GenerateRequest
from app.simulator.script import Action, Kind
from app.simulator.tokenizer import END_ID, decode, encode

DEFAULT_TEXT = "TU"
ABSENT = "__absent__"
FROZEN_LOOK_S = 0.05

ABORTED = Action(
    kind=Kind.ANSWER,
    merge={
        "text": "",
        "output_ids": [],
        "meta_info": {
            "finish_reason": {
                "type": "abort",
                "message": "Aborted",
                "status_code": None,
                "err_type": None,
            }
        },
    },
)


def deep_merge(under: Any, over: Any) -> Any:
    """Return `over` laid on `under`: objects by key, lists of objects by place."""
    if isinstance(under, Mapping) and isinstance(over, Mapping):
        merged = dict(under)
        for key, value in over.items():
            if value == ABSENT:
                merged.pop(key, None)
            else:
                merged[key] = deep_merge(merged.get(key), value)
        return merged
    if _objects(under) and _objects(over):
        return [deep_merge(under[i] if i < len(under) else None, v) for i, v in enumerate(over)]
    return over


def _objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


class Playback:
    """One scripted answer on one connection."""

    def __init__(
        self,
        machine: Machine,
        request: GenerateRequest,
        connection: Connection,
        send: Send,
        entry: RequestEntry,
    ) -> None:
        self._machine = machine
        self._request = request
        self._connection = connection
        self._send = send
        self._entry = entry
        self._aborted = False

    async def run(self, action: Action) -> None:
        self._entry.outcome = str(action.kind)
        delay_s = action.delay.draw_s(self._machine.answered) * self._machine.settings.delay_scale
        self._machine.answered += 1
        streams = action.kind is Kind.ANSWER and self._request.stream
        if streams:
            await start_stream(self._send)
        if await self._left_meanwhile(delay_s, action):
            self._entry.outcome = "disconnect"
            self._machine.counters.disconnects += 1
        elif self._aborted:
            await self._answer(ABORTED)
        else:
            await self._act(action)

    async def _left_meanwhile(self, delay_s: float, action: Action) -> bool:
        if action.ignores_disconnect:
            await self._machine.clock.sleep(delay_s)
            return False
        live, rid = self._machine.live, self._request.rid
        live[rid] = self._abort
        if delay_s:
            await self._connection.wait_lost(delay_s)
        while self._machine.engine.frozen and not self._connection.lost:
            await self._connection.wait_lost(FROZEN_LOOK_S)
        live[rid] = None
        return self._connection.lost

    def _abort(self) -> None:
        """End the delay: a client's abort is answered at once, with nothing made."""
        self._aborted = True
        self._machine.counters.aborts += 1
        if self._connection.on_lost is not None:
            self._connection.on_lost()

    async def _act(self, action: Action) -> None:
        match action.kind:
            case Kind.ANSWER:
                await self._answer(action)
            case Kind.JSON:
                await send_json(self._send, action.status, action.body, dict(action.headers))
            case Kind.RAW:
                await self._raw(action)
            case Kind.EVENTS:
                await self._events(action)
            case Kind.MODEL:
                answer = ModelAnswer(
                    self._machine, self._request, self._connection, self._send, self._entry
                )
                await answer.run(action.fault)
            case _:
                await self._break_off(action.kind)

    async def _break_off(self, kind: Kind) -> None:
        if kind is Kind.CUT_MID_BODY:
            await self._cut_mid_body()
        elif kind is Kind.CUT_BEFORE_HEADERS:
            await self._connection.reset()
        else:
            if kind is Kind.EXIT:
                self._machine.die()
            await self._connection.wait_lost(None)

    def default_answer(self, output_tokens: int | None = None) -> dict[str, Any]:
        request = self._request
        text, ids = DEFAULT_TEXT, [*encode(DEFAULT_TEXT), END_ID]
        if output_tokens is not None:
            vocabulary = self._machine.settings.vocabulary_size
            end = prompt_end(request.input_ids)
            words = AnswerStream(prompt_seed(request.input_ids[:end]), 0, vocabulary)
            ids = [*words.words(0, max(0, output_tokens - 1)), END_ID]
            text = decode(ids, vocabulary_size=vocabulary)
        return {
            "text": text,
            "output_ids": ids,
            "meta_info": {
                "id": request.rid,
                "finish_reason": {"type": "stop", "matched": END_ID},
                "prompt_tokens": len(request.input_ids),
                "weight_version": self._machine.settings.weight_version,
                "num_retractions": 0,
                "completion_tokens": len(ids),
                "cached_tokens": 0,
                "e2e_latency": self._machine.clock.monotonic() - self._entry.received_at,
            },
        }

    def _merged(self, action: Action) -> dict[str, Any]:
        answer: dict[str, Any] = deep_merge(self.default_answer(action.output_tokens), action.merge)
        asked = action.merge.get("meta_info")
        asked = asked if isinstance(asked, Mapping) else {}
        reason = asked.get("finish_reason", ABSENT)
        if reason != ABSENT:  # one reason's fields mean nothing in another
            answer["meta_info"]["finish_reason"] = reason
        ids = action.merge.get("output_ids")
        if isinstance(ids, list) and "completion_tokens" not in asked:
            answer["meta_info"]["completion_tokens"] = len(ids)
        return answer

    async def _answer(self, action: Action) -> None:
        answer = self._merged(action)
        body = orjson.dumps(answer)
        if self._request.stream:
            await send_event(self._send, body)
            await send_done(self._send)
        else:
            await send_body(self._send, 200, body, [JSON_HEADER])
        self._entry.outcome = "abort" if action is ABORTED else self._entry.outcome
        ids = answer.get("output_ids")
        self._delivered(len(ids) if isinstance(ids, list) else 0)

    async def _raw(self, action: Action) -> None:
        body = action.body if isinstance(action.body, str) else orjson.dumps(action.body).decode()
        body = body.replace('"$n"', str(len(self._request.input_ids)))
        body = body.replace("$rid", self._request.rid)
        headers = [(k.lower().encode(), v.encode()) for k, v in action.headers]
        await send_body(self._send, 200, body.encode(), [JSON_HEADER, *headers])

    async def _events(self, action: Action) -> None:
        await start_stream(self._send)
        for event in action.events:
            raw = event.encode() if isinstance(event, str) else orjson.dumps(event)
            await send_event(self._send, raw)
        if action.ends_properly:
            await end_stream(self._send)
            return
        await self._connection.wait_lost(SETTLE_S)
        await self._connection.drop()

    async def _cut_mid_body(self) -> None:
        body = orjson.dumps(self.default_answer())
        if self._request.stream:
            await start_stream(self._send)
            half = b"data: " + body[: len(body) // 2]
            await self._send({"type": "http.response.body", "body": half, "more_body": True})
        else:
            await send_half(self._send, body)
        await self._connection.wait_lost(SETTLE_S)
        await self._connection.reset()

    def _delivered(self, tokens: int) -> None:
        if not self._connection.lost:
            self._machine.counters.delivered_tokens += tokens
            self._entry.tokens_sent += tokens
