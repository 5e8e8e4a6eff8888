"""The route /generate: reads a request, counts it, and gives it to the model or to the script.

Owns the order of checks and the books of one request. Invariant: whatever happens to it, a request
that was counted in is counted out, and its rid is free afterwards.
"""

from dataclasses import replace
from uuid import uuid4

import orjson

from app.simulator.connection import Connection
from app.simulator.counters import RequestEntry
from app.simulator.machine import Machine
from app.simulator.model_answers import ModelAnswer
from app.simulator.playback import Playback
from app.simulator.refusals import (
    BodyRefusedError,
    PoisonedError,
    RequestRefusedError,
    plain_error,
    stream_error,
)
from app.simulator.replies import Send, send_done, send_event, send_json, start_stream
from app.simulator.requests import RawRequest, judge, prompt_ids, read_body
from app.simulator.sampling import check_keys


async def generate(
    machine: Machine, body: bytes, content_type: str, connection: Connection, send: Send
) -> None:
    try:
        raw = read_body(body, content_type)
        check_keys(raw.sampling_params)
        ids = prompt_ids(raw, machine.settings)
    except BodyRefusedError as refusal:
        await send_json(send, refusal.status, refusal.body)
    except RequestRefusedError as refusal:
        await _refuse(send, refusal, stream=raw.stream)
    except PoisonedError as poison:
        await _take_poison(machine, poison, raw, connection, send)
    else:
        await _answer(machine, replace(raw, rid=raw.rid or uuid4().hex), ids, connection, send)


async def _refuse(send: Send, refusal: RequestRefusedError, *, stream: bool) -> None:
    if not stream:
        await send_json(send, 400, plain_error(refusal.message))
        return
    await start_stream(send)
    await send_event(send, orjson.dumps(stream_error(refusal.message)))
    await send_done(send)


async def _take_poison(
    machine: Machine,
    poison: PoisonedError,
    raw: RawRequest,
    connection: Connection,
    send: Send,
) -> None:
    if machine.settings.poison_kills:
        machine.die()
        await connection.wait_lost(None)
        return
    await _refuse(send, RequestRefusedError(f"{poison} is not accepted"), stream=raw.stream)


async def _answer(
    machine: Machine, raw: RawRequest, ids: list[int], connection: Connection, send: Send
) -> None:
    counters, rid = machine.counters, raw.rid or ""
    row, text = machine.row_of(ids)
    entry = RequestEntry(
        rid=rid,
        row=row,
        n_input_ids=len(ids),
        max_new_tokens=raw.sampling_params.get("max_new_tokens"),
        sampling_params=raw.sampling_params,
        stream=raw.stream,
        received_at=machine.clock.monotonic(),
    )
    if machine.settings.log_requests:
        counters.log.append(entry)
    if machine.settings.count_rows:
        counters.row_called(row)
    counters.enter()
    claimed = False
    try:
        _claim(machine, rid)
        claimed = True
        request = judge(raw, rid, ids, machine.settings)
        action = machine.script.action_for(row, text)
        if action is None:
            await ModelAnswer(machine, request, connection, send, entry).run()
        else:
            await Playback(machine, request, connection, send, entry).run(action)
    except RequestRefusedError as refusal:
        entry.outcome = "refused"
        await _refuse(send, refusal, stream=raw.stream)
    finally:
        if claimed:
            machine.live.pop(rid, None)
        counters.leave()
        entry.ended_at = machine.clock.monotonic()


def _claim(machine: Machine, rid: str) -> None:
    """Take the rid for this request; refuse one that is live (or, on order, was ever seen)."""
    seen = machine.counters.rid_seen(rid) if machine.settings.count_rows else False
    strict = machine.settings.reject_seen_rids or machine.script.rejects_seen_rids
    if rid in machine.live or (seen and strict):
        raise RequestRefusedError(f"Duplicate request ID detected: {rid}")
    machine.live[rid] = None
