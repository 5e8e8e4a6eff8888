"""One claimed sample on its way through one request: what was sent, what has come, what it means.

Owns the state of a call between claim and settle. Its ids belong to the accumulator; the settler
reads how far they have come. Nothing here touches ledger or disk.
"""

from array import array
from dataclasses import dataclass, field
from datetime import datetime

from app.core.outcome import Asked
from app.core.reasoning import prompt_opens
from app.core.types import AttemptEnd, Claim, Gain, Outcome, Segment
from app.sglang.stream import Answer
from app.worker.plan import WorkerPlan


@dataclass(slots=True, eq=False)
class Call:
    """A call. `saved` counts the new ids that checkpoints already hold.

    The moments in `_at_s` are of the monotonic clock.
    """

    claim: Claim
    prompt: "array[int]"
    server: str
    gen_id: str
    started_at: datetime
    answer: Answer = field(default_factory=Answer)
    is_trial: bool = False
    is_withdrawn: bool = False
    saved: int = 0
    end: AttemptEnd | None = None
    outcome: Outcome | None = None
    text: str | None = None
    finished_at: datetime | None = None
    sent_at_s: float | None = None
    first_ids_at_s: float | None = None
    ended_at_s: float | None = None
    line: tuple[int, int] | None = None  # offset, bytes: written to the shard, not yet settled
    encoded: bytes = field(default=b"", repr=False)

    @property
    def made_tokens(self) -> int:
        """Return how long the answer is by now, earlier attempts included."""
        return len(self.claim.held) + len(self.answer.ids)

    @property
    def is_alone(self) -> bool:
        """Nothing else of the run is in flight: so until its first token has come."""
        return self.claim.alone and not self.answer.ids

    @property
    def held_tokens(self) -> int:
        """Return what checkpoints hold of the sample."""
        return len(self.claim.held) + self.saved

    @property
    def first_token_ms(self) -> int | None:
        """Return the time to the first token; None for a continued answer, or one not streamed."""
        return None if self.answer.came_whole else self._since_sent_ms(self.first_ids_at_s)

    @property
    def latency_ms(self) -> int | None:
        """Return the time to the end; None for a continued answer: its beginning is not in it."""
        return self._since_sent_ms(self.ended_at_s)

    def _since_sent_ms(self, moment_s: float | None) -> int | None:
        if moment_s is None or self.sent_at_s is None or self.claim.held:
            return None
        return int(1000 * (moment_s - self.sent_at_s))

    def gain(self) -> Gain | None:
        """Return what has come since the last checkpoint, None if nothing has.

        The id that closes a complete answer is left out: a checkpoint must be an answer that can
        go on, should the worker die before the answer is settled.
        """
        end = len(self.answer.ids) - 1 if self.answer.is_complete else len(self.answer.ids)
        return self._gained(self.answer.ids[self.saved : end])

    def whole_gain(self) -> Gain | None:
        """Return all that no checkpoint holds: what settling an answer accounts for."""
        return self._gained(self.answer.ids[self.saved :])

    def _gained(self, fresh: "array[int]") -> Gain | None:
        if not fresh:
            return None
        return Gain(
            sample_id=self.claim.sample_id,
            attempt=self.claim.attempt,
            from_token=self.held_tokens,
            rid=self.claim.rid,
            server=self.server,
            gen_id=self.gen_id,
            ids=fresh.tobytes(),
        )

    def output_ids(self) -> "array[int]":
        return self.claim.held + self.answer.ids

    def segments(self) -> tuple[Segment, ...]:
        """Return which request made the answer's tokens from where on."""
        mine = Segment(
            from_token=len(self.claim.held),
            rid=self.claim.rid,
            server=self.server,
            gen_id=self.gen_id,
        )
        return (*self.claim.segments, mine) if self.answer.ids else self.claim.segments or (mine,)

    def asked(self, plan: WorkerPlan, *, server_is_untried: bool) -> Asked:
        """Return what the verdict needs to know of this call.

        A trial tells something of the server only until ids have come from it, to whichever call.
        """
        matched = _matched(self.end)
        return Asked(
            prompt_tokens=len(self.prompt) + len(self.claim.held),
            held=self.claim.held,
            max_new_tokens=self.claim.max_new_tokens,
            charged=self.claim.charged,
            max_attempts=plan.max_attempts,
            server_deaths=self.claim.server_deaths,
            is_trial=self.is_trial and server_is_untried,
            was_alone=self.is_alone,
            end_token_ids=frozenset() if matched is None else frozenset({matched}),
            think_open=plan.think_open,
            think_close=plan.think_close,
            thinking_opened_by_prompt=prompt_opens(self.prompt, plan.reasoning_marks),
            detect_loops=plan.detect_loops,
        )


def _matched(end: AttemptEnd | None) -> int | None:
    """Return the id that ended the answer, if an id did."""
    reason = end.finish_reason if end else None
    matched = reason.get("matched") if isinstance(reason, dict) else None
    return matched if isinstance(matched, int) else None
