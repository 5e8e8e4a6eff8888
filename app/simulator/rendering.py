"""Writes a model's answer as SGLang 0.5.23 does: whole events, cumulative or in parts.

Owns text, ids and meta_info of one answer; the bytes of earlier ids are kept, never made again.
Invariant: `completion_tokens` counts all ids so far in either mode.
"""

from functools import lru_cache
from typing import Any

import orjson

from app.clock import Clock
from app.simulator.jobs import Fault, Job
from app.simulator.settings import SimulatorSettings
from app.simulator.tokenizer import SPECIAL_TEXTS, token_bytes


@lru_cache(maxsize=8)
def _digits(vocabulary_size: int) -> tuple[bytes, ...]:
    return tuple(b"%d" % token for token in range(vocabulary_size))


class AnswerWriter:
    """Turns the progress of a job into events; also into the one body of a plain answer."""

    def __init__(
        self, job: Job, settings: SimulatorSettings, clock: Clock, *, shows_end_text: bool
    ) -> None:
        self.sent = 0
        self.prompt_token_ids: list[int] | None = None
        self._job = job
        self._settings = settings
        self._clock = clock
        self._shows_end_text = shows_end_text
        self._ids: list[bytes] = []
        self._text = bytearray()
        self._text_made = 0
        self._received_s = clock.now().timestamp()
        self._received_at = clock.monotonic()
        self._opened = False

    def event(self, upto: int, settings: SimulatorSettings, reason: dict[str, Any] | None) -> bytes:
        """Return the event that brings the client to `upto` ids."""
        self._settings = settings
        if settings.incremental and self._job.stream:
            self._ids.clear()
            self._text.clear()
        first, self._opened = not self._opened, True
        self._add(upto)
        meta = self._meta(reason, first=first)
        return self._body(b",".join(self._ids), bytes(self._text), meta, final=reason is not None)

    def queue_abort(self, settings: SimulatorSettings, reason: dict[str, Any]) -> bytes:
        """Return the answer of a request that was aborted while it waited.

        In parts, a once retracted answer repeats its last id and all its text: a real trap.
        """
        self._settings = settings
        repeats = settings.incremental and self._job.stream
        if repeats:
            self.sent, self._text_made = 0, 0
            self._ids.clear()
            self._text.clear()
        self._add(self._job.due)
        ids = self._ids[-1:] if repeats else self._ids
        meta = {
            "id": self._job.rid,
            "finish_reason": reason,
            "weight_version": settings.weight_version,
            "e2e_latency": self._clock.monotonic() - self._received_at,
            "weight_versions": self._versions(),
            "completion_tokens": self._job.due,
            "response_sent_to_client_ts": self._clock.now().timestamp(),
        }
        return self._body(b",".join(ids), bytes(self._text), meta, final=True)

    def _add(self, upto: int) -> None:
        job, begin = self._job, self.sent
        new = job.ids(begin, upto)
        order = job.plan.fault
        if order is not None and order.fault is Fault.GAP and begin <= order.after_tokens < upto:
            del new[order.after_tokens - begin]
        digits = _digits(job.words.vocabulary_size)
        self._ids.extend(map(digits.__getitem__, new))
        text = b"".join(map(token_bytes(job.words.vocabulary_size).__getitem__, new))
        if job.plan.ends_with_end_id and self._shows_end_text and upto == job.total:
            text += SPECIAL_TEXTS[2].encode()
        limit = job.plan.text_limit_bytes
        if limit is not None:
            text, self._text_made = (
                text[: max(0, limit - self._text_made)],
                self._text_made + len(text),
            )
        self._text += text
        self.sent = upto

    def _body(self, ids: bytes, text: bytes, meta: dict[str, Any], *, final: bool) -> bytes:
        parts = [b"{"]
        if self._settings.send_text:
            parts += [b'"text":"', text, b'",']
        parts += [b'"output_ids":[', ids, b'],"meta_info":', orjson.dumps(meta)]
        if final and self.prompt_token_ids is not None:
            parts += [b',"prompt_token_ids":', orjson.dumps(self.prompt_token_ids)]
        parts.append(b"}")
        return b"".join(parts)

    def _versions(self) -> list[dict[str, Any]]:
        version = self._settings.weight_version
        return [{"version": version, "start": 0, "end": self._job.due}]

    def _meta(self, reason: dict[str, Any] | None, *, first: bool) -> dict[str, Any]:
        job, settings = self._job, self._settings
        meta: dict[str, Any] = {
            "id": job.rid,
            "finish_reason": reason,
            "prompt_tokens": job.prompt_tokens,
            "weight_version": settings.weight_version,
            "num_retractions": job.retractions,
        }
        if settings.enable_metrics:
            meta |= self._scheduler_times()
        meta |= {
            "reasoning_tokens": 0,
            "completion_tokens": self.sent,
            "cached_tokens": job.cached_tokens,
        }
        if reason is not None:
            meta["weight_versions"] = self._versions()
        details = {"device": job.cached_tokens, "host": 0} if job.cached_tokens else None
        meta |= {"cached_tokens_details": details, "dp_rank": None}
        if reason is not None:
            meta |= self._final_times()
        elif first:
            meta["response_sent_to_client_ts"] = self._clock.now().timestamp()
        return meta

    def _scheduler_times(self) -> dict[str, Any]:
        queue_s = (self._job.admitted_at or self._received_at) - self._received_at
        first_s = (self._job.first_at or self._received_at) - self._received_at
        return {
            "storage_prefetch_wait": 0.0,
            "storage_staging_wait": 0.0,
            "forward_entry_time": self._received_s + queue_s,
            "prefill_finished_time": self._received_s + max(queue_s, first_s),
            "queue_time": queue_s,
        }

    def _final_times(self) -> dict[str, Any]:
        elapsed_s = self._clock.monotonic() - self._received_at
        first_s = (self._job.first_at or self._received_at) - self._received_at
        times: dict[str, Any] = {"e2e_latency": elapsed_s}
        if self._settings.enable_metrics:
            times |= {
                "request_received_ts": self._received_s,
                "first_token_latency": first_s,
                "api_server_dispatch_finish_ts": self._received_s,
                "request_finished_ts": self._received_s + elapsed_s,
            }
            if self.sent > 1 and elapsed_s > first_s:
                times["decode_throughput"] = (self.sent - 1) / (elapsed_s - first_s)
        return times | {"response_sent_to_client_ts": self._received_s + elapsed_s}
