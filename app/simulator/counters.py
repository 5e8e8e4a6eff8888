"""What the server has seen and done, for assertions and for /metrics.

Owns the figures and the bounded request log; decides nothing. Written by the server's own thread
only; any thread may read. A restart on the same port keeps the counters of the tests and clears
those of the dead process (`ServerFigures`).
"""

from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

TTFT_BUCKETS_S = (
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0),
    *(100.0, 200.0, 400.0),
)
HEAD_CHARACTERS = 120


@dataclass(slots=True)
class RequestEntry:
    """One line of the request log; `outcome` and `tokens_sent` are filled at the end."""

    rid: str
    row: str
    n_input_ids: int
    max_new_tokens: int | None
    sampling_params: dict[str, Any]
    stream: bool
    received_at: float
    outcome: str = "open"
    tokens_sent: int = 0
    ended_at: float | None = None


@dataclass(slots=True)
class ServerFigures:
    """The counters of one server process, as its /metrics shows them."""

    decode_tokens: int = 0
    prefill_tokens: int = 0
    cached_tokens: int = 0
    finished: dict[bool, list[int]] = field(
        default_factory=lambda: {True: [0, 0, 0], False: [0, 0, 0]}
    )
    abort_calls: int = 0
    retractions: int = 0
    retracted_input_tokens: int = 0
    retracted_output_tokens: int = 0
    ttft_counts: list[int] = field(default_factory=lambda: [0] * (len(TTFT_BUCKETS_S) + 1))
    ttft_sum_s: float = 0.0

    def finish(self, *, stream: bool, prompt_tokens: int, completion_tokens: int) -> None:
        figures = self.finished[stream]
        figures[0] += 1
        figures[1] += prompt_tokens
        figures[2] += completion_tokens

    def first_token(self, wait_s: float) -> None:
        self.ttft_sum_s += wait_s
        for place, limit in enumerate(TTFT_BUCKETS_S):
            if wait_s <= limit:
                self.ttft_counts[place] += 1
                return
        self.ttft_counts[-1] += 1


class Counters:
    """Counts over the whole life of a simulator, restarts included."""

    def __init__(self, *, log_limit: int) -> None:
        self.log: deque[RequestEntry] = deque(maxlen=log_limit)
        self.in_flight = 0
        self.running = 0
        self.queued = 0
        self.starts = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was seen; what is in flight stays counted."""
        self.log.clear()
        self.calls: dict[str, int] = {}
        self.http_requests: dict[str, int] = {}
        self.max_in_flight = self.in_flight
        self.generate_calls = 0
        self.generated_tokens = 0
        self.delivered_tokens = 0
        self.aborts = 0
        self.disconnects = 0
        self.duplicate_rids = 0
        self.tcp_accepts = 0
        self.retractions = 0
        self._seen_rids: set[str] = set()

    def row_called(self, row: str) -> None:
        self.calls[row] = self.calls.get(row, 0) + 1

    def rid_seen(self, rid: str) -> bool:
        """Note the rid; return whether it had come before."""
        if rid in self._seen_rids:
            self.duplicate_rids += 1
            return True
        self._seen_rids.add(rid)
        return False

    def enter(self) -> None:
        self.generate_calls += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def leave(self) -> None:
        self.in_flight -= 1

    @property
    def calls_total(self) -> int:
        return sum(self.calls.values())

    def requests(self, row: str | None = None) -> list[RequestEntry]:
        return [entry for entry in tuple(self.log) if row is None or entry.row == row]

    def snapshot(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        plain = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return plain | {
            "calls": dict(self.calls),
            "http_requests": dict(self.http_requests),
            "calls_total": self.calls_total,
            "log": [asdict(entry) for entry in tuple(self.log)],
        }
