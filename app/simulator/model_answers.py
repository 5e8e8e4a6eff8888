"""Answers a request with the model: hands it to the engine and writes what comes of it.

Owns the life of one engine request on one connection: events as they fall due, the client's
leaving, and the faults a script may order. Invariant: when this returns, the engine has let go.
"""

import asyncio
from typing import Any

import orjson

from app.simulator.connection import Connection
from app.simulator.counters import RequestEntry
from app.simulator.jobs import Fault, FaultOrder, Job
from app.simulator.machine import Machine
from app.simulator.refusals import object_error, plain_error
from app.simulator.rendering import AnswerWriter
from app.simulator.replies import (
    JSON_HEADER,
    Send,
    send_body,
    send_done,
    send_event,
    send_json,
    start_stream,
)
from app.simulator.requests import GenerateRequest

MOST_EVENTS_AT_ONCE = 32
SETTLE_S = 0.02  # lets what was written leave the machine before a reset discards it


class ModelAnswer:
    """One request on its way through the engine."""

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

    async def run(self, fault: FaultOrder | None = None) -> None:
        machine, request = self._machine, self._request
        longest = machine.settings.longest_request_tokens - 5
        if len(request.input_ids) >= longest:
            await self._refuse_length(longest)
            return
        job = machine.make_job(request, fault)
        writer = AnswerWriter(
            job,
            machine.settings,
            machine.clock,
            shows_end_text=request.sampling.no_stop_trim
            and not request.sampling.skip_special_tokens,
        )
        if request.return_prompt_token_ids:
            writer.prompt_token_ids = request.input_ids
        machine.live[request.rid] = lambda: machine.engine.abort(job)
        self._connection.on_lost = lambda: self._client_left(job)
        try:
            machine.engine.submit(job)
            if request.stream:
                await self._stream(job, writer)
            else:
                await self._answer_whole(job, writer)
        finally:
            self._connection.on_lost = None
            machine.engine.abort(job, left=True)

    def _client_left(self, job: Job) -> None:
        engine = self._machine.engine
        if self._request.stream:
            engine.abort(job, left=True)
        elif not self._request.background:
            # The real server polls for a client that hangs up without a stream.
            delay_s = self._machine.settings.nonstream_disconnect_s
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, lambda: engine.abort(job, left=True))
        job.wake()

    # ---- streamed ----

    async def _stream(self, job: Job, writer: AnswerWriter) -> None:
        await start_stream(self._send)
        while not self._connection.lost:
            await self._send_due(job, writer)
            if job.finished and not self._connection.lost:
                await self._end_stream(job, writer)
                return
            if writer.sent >= job.due and not self._connection.lost:
                await job.news()
        self._note_disconnect()

    async def _send_due(self, job: Job, writer: AnswerWriter) -> None:
        """Send events up to what is due; the last one is left to the end of the stream."""
        while job.due > writer.sent and not self._connection.lost:
            # As many events as a server that never slept would have sent, but for a long backlog.
            backlog = (job.due - writer.sent) // MOST_EVENTS_AT_ONCE
            step = max(backlog, job.interval_tokens) if writer.sent else 1
            upto = min(job.due, writer.sent + step)
            if job.finished and upto == job.due:
                return
            await self._send_part(writer, upto)

    async def _send_part(self, writer: AnswerWriter, upto: int) -> None:
        new = upto - writer.sent
        await send_event(self._send, writer.event(upto, self._machine.settings, None))
        self._delivered(new)

    async def _end_stream(self, job: Job, writer: AnswerWriter) -> None:
        order, reason = job.plan.fault, job.finish_reason or {}
        ordered = order is not None and reason is job.plan.finish_reason
        if order is not None and ordered and order.fault in (Fault.CUT, Fault.HANG):
            if job.due > writer.sent:
                await self._send_part(writer, job.due)
            await self._break_off(order.fault)
            return
        new = job.due - writer.sent
        settings = self._machine.settings
        if job.out_of_queue:
            event = writer.queue_abort(settings, reason)
        else:
            event = writer.event(job.due, settings, reason)
        await send_event(self._send, event)
        await send_done(self._send)
        self._delivered(new)
        self._entry.outcome = str(reason.get("type"))

    async def _break_off(self, fault: Fault) -> None:
        self._entry.outcome = str(fault)
        if fault is Fault.HANG:
            await self._connection.wait_lost(None)
            return
        await self._connection.wait_lost(SETTLE_S)
        await self._connection.reset()

    # ---- in one piece ----

    async def _answer_whole(self, job: Job, writer: AnswerWriter) -> None:
        while not job.finished:
            await job.news()
            if self._connection.lost and self._machine.engine.closed:
                break
        if self._connection.lost:
            self._note_disconnect()
            return
        order, reason = job.plan.fault, job.finish_reason or {}
        if order is not None and reason is job.plan.finish_reason and order.fault is Fault.HANG:
            await self._break_off(order.fault)
            return
        settings = self._machine.settings
        if job.out_of_queue:
            body = writer.queue_abort(settings, reason)
        else:
            body = writer.event(job.due, settings, reason)
        if order is not None and reason is job.plan.finish_reason and order.fault is Fault.CUT:
            await send_half(self._send, body)
            await self._break_off(order.fault)
            return
        await self._send_whole(job, reason, body)

    async def _send_whole(self, job: Job, reason: dict[str, Any], body: bytes) -> None:
        status = reason.get("status_code")
        self._entry.outcome = str(reason.get("type"))
        if reason.get("type") == "abort" and isinstance(status, int):
            message = str(reason.get("message"))
            plain = status == 400  # noqa: PLR2004 - HTTP
            error = plain_error(message) if plain else object_error(status, message, str(status))
            await send_json(self._send, status, error)
            return
        await send_body(self._send, 200, body, [JSON_HEADER])
        self._delivered(job.due)

    # ---- ends ----

    def _delivered(self, tokens: int) -> None:
        if not self._connection.lost:
            self._machine.counters.delivered_tokens += tokens
            self._entry.tokens_sent += tokens

    def _note_disconnect(self) -> None:
        self._entry.outcome = "disconnect"
        self._machine.counters.disconnects += 1

    async def _refuse_length(self, longest: int) -> None:
        """Answer as the scheduler does; in a stream with one made-up id."""
        message = (
            f"Input length ({len(self._request.input_ids)} tokens) exceeds the maximum allowed "
            f"length ({longest} tokens). Use a shorter input or enable --allow-auto-truncate."
        )
        self._entry.outcome = "refused"
        if not self._request.stream:
            await send_json(self._send, 400, plain_error(message))
            return
        reason = {
            "type": "abort",
            "message": message,
            "status_code": 400,
            "err_type": "BadRequestError",
        }
        meta = {
            "id": self._request.rid,
            "finish_reason": reason,
            "prompt_tokens": 1,
            "weight_version": self._machine.settings.weight_version,
            "num_retractions": 0,
            "reasoning_tokens": 0,
            "completion_tokens": 1,
            "cached_tokens": 0,
        }
        await start_stream(self._send)
        event = {"text": "", "output_ids": [0], "meta_info": meta}
        await send_event(self._send, orjson.dumps(event))
        await send_done(self._send)


async def send_half(send: Send, body: bytes) -> None:
    """Send the head of a body whose length promises more."""
    length = (b"content-length", b"%d" % (len(body) + 1))
    headers = [length, JSON_HEADER]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    half = body[: len(body) // 2]
    await send({"type": "http.response.body", "body": half, "more_body": True})
