"""The recent past of one run: tokens and requests in flight, in pieces of ten seconds.

Owns what speeds are estimated from: pieces since the last control change, at most two hours, of
which newer ones count more (half as much after 30 min); and for the whole session how fast it
went at each level of requests running. Where a server's speed shifts (`core/pieces`), all that is
older is forgotten. Pure, fed by its caller. Invariant: the first piece begins with the first token,
so that a cold start is no speed.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from typing import NamedTuple

from app.core.pieces import SHIFT_PIECES, Piece, Shift, blocks, running_ratio, shift, slowness
from app.core.rates import Level, StepCurve, fading_weights, fit_steps
from app.core.types import PartitionId

WINDOW_S = 7200.0
PIECE_S = 10.0
BLOCK_S = 300.0
# what is in flight and what of it runs is that of now: it changes with each partition that ends
NOW_HALF_LIFE_S = 60.0
_N_BLOCKS = 24
_LEVEL_STEP = log(1.1)
_TINY = 1e-9


class Beat(NamedTuple):
    """One partition at one moment."""

    received_tokens: int
    n_in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """How one partition went lately, and what it has in flight now.

    `tokens_per_slot_s` is for each request in flight; `observed_tokens` is unweighted.
    """

    tokens_per_slot_s: float
    n_in_flight: float
    observed_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the recent past says. `slowness`: the mean step, against the curve's.

    `slownesses` are those of equal blocks, `weights` what each counts. `curve` is None until
    something was seen in this session. `n_changes` counts control changes. `running_ratio`: the
    share that ran of what was in flight, while about as many were as are now; None if untold.
    `has_tokens`: some have come in this session, also if they say nothing of the speed now.
    """

    observed_s: float
    n_changes: int
    curve: StepCurve | None = None
    slowness: float = 1.0
    slownesses: Sequence[float] = ()
    weights: Sequence[float] = ()
    running_ratio: float | None = None
    has_tokens: bool = False
    went: Mapping[PartitionId, Went] = field(default_factory=dict)


class Pace:
    """See the module."""

    def __init__(self) -> None:
        self.n_changes = 0
        self._pieces: deque[Piece] = deque()
        self._open: Piece | None = None
        self._last: dict[PartitionId, Beat] = {}
        self._last_s = 0.0
        self._controls: object = None
        self._is_told = False
        self._has_tokens = False
        self._is_slower = False
        self._unsaid_s = 0.0  # steady running of which a shift has made the speed void
        self._levels: dict[int, list[float]] = {}  # seconds, request-seconds, tokens

    def add(
        self,
        at_s: float,
        beats: Mapping[PartitionId, Beat],
        controls: object,
        running_ratio: float | None = None,
    ) -> None:
        """Take all working partitions at one moment.

        `controls`: anything that is equal while nobody has changed what speed depends on.
        `running_ratio`: the share of what is in flight that runs, None if no server says.
        """
        self._is_told = running_ratio is not None
        # before a control change forgets them: the speed that is shown counts them too
        self._has_tokens |= any(
            beat.received_tokens > self._last[key].received_tokens
            for key, beat in beats.items()
            if key in self._last
        )
        if controls != self._controls:
            self.n_changes += int(self._controls is not None)
            self.forget()
            self._controls = controls
        if self._last:
            self._grow(at_s, beats, 1.0 if running_ratio is None else running_ratio)
        self._last, self._last_s = dict(beats), at_s
        while self._pieces and self._pieces[0].begin_s < at_s - WINDOW_S:
            self._pieces.popleft()

    def forget(self) -> None:
        """Forget the pieces: nothing works. What was learnt of the server stays."""
        self._controls = None
        self._pieces.clear()
        self._unsaid_s = 0.0
        self._is_slower = False
        self._open = None
        self._last = {}

    def forget_server(self) -> None:
        """Forget how fast the server goes: it is another one now."""
        self._levels.clear()
        self._is_slower = False

    def _grow(self, at_s: float, beats: Mapping[PartitionId, Beat], running_ratio: float) -> None:
        gains = {
            key: max(0, beat.received_tokens - self._last[key].received_tokens)
            for key, beat in beats.items()
            if key in self._last
        }
        if self._open is None:
            if not self._pieces:  # the first tokens came at some moment before now
                self._open = Piece(begin_s=at_s, end_s=at_s) if any(gains.values()) else None
                return
            self._open = Piece(begin_s=self._last_s, end_s=self._last_s)
        piece, passed_s = self._open, at_s - self._last_s
        for key, gain in gains.items():
            flying = (beats[key].n_in_flight + self._last[key].n_in_flight) / 2
            # tokens come from somebody, also if nobody was seen at the two looks
            flying_s = max(flying, 1.0 if gain else 0.0) * passed_s
            piece.tokens[key] = piece.tokens.get(key, 0) + gain
            piece.flying_s[key] = piece.flying_s.get(key, 0.0) + flying_s
            piece.running_s += flying_s * running_ratio
        piece.end_s = at_s
        # nothing for ten seconds may be the pace of one slow answer: wait for what comes
        if piece.seconds >= PIECE_S - _TINY and piece.all_tokens:
            self._close(piece)

    def _close(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._open = None
        self._learn(piece)
        shifted = shift(list(self._pieces), was_slower=self._is_slower)
        if shifted is not None:
            self.forget_server()
            self._is_slower = shifted is Shift.SLOWER
            # the first piece of the shift may hold a part of what was before
            while len(self._pieces) >= SHIFT_PIECES:
                self._unsaid_s += self._pieces.popleft().seconds
            for each in self._pieces:
                self._learn(each)

    def _learn(self, piece: Piece) -> None:
        place = round(log(max(1.0, piece.n_running)) / _LEVEL_STEP)
        level = self._levels.setdefault(place, [0.0] * 3)
        level[0] += piece.seconds
        level[1] += piece.running_s
        level[2] += piece.all_tokens

    def seen(self, at_s: float) -> Seen:
        """Return what the recent past says of how fast it goes."""
        pieces = list(self._pieces)
        if self._open is not None and self._open.seconds > 0:
            pieces.append(self._open)
        seconds = sum(piece.seconds for piece in pieces)
        steady_s = seconds + self._unsaid_s
        tokens = sum(piece.all_tokens for piece in pieces)
        levels = list(self._levels.values())
        if not levels and tokens:
            levels = [[seconds, sum(piece.running_s for piece in pieces), float(tokens)]]
        curve = fit_steps(
            [Level(n_requests=r / s, tokens_per_s=n / s, seconds=s) for s, r, n in levels]
        )
        if curve is None or not tokens:
            return Seen(
                observed_s=steady_s,
                n_changes=self.n_changes,
                curve=curve,
                has_tokens=self._has_tokens,
            )
        seen = replace(
            _summed(pieces, at_s, curve),
            observed_s=steady_s,
            n_changes=self.n_changes,
            has_tokens=self._has_tokens,
        )
        return seen if self._is_told else replace(seen, running_ratio=None)


def _summed(pieces: Sequence[Piece], at_s: float, curve: StepCurve) -> Seen:
    ages_s = [max(0.0, at_s - piece.end_s) for piece in pieces]
    weights, now = fading_weights(ages_s), fading_weights(ages_s, NOW_HALF_LIFE_S)
    observed_s = sum(piece.seconds for piece in pieces)
    now_s = sum(w * piece.seconds for w, piece in zip(now, pieces, strict=True))
    went: dict[PartitionId, Went] = {}
    for key in {key for piece in pieces for key in piece.tokens}:
        tokens = sum(w * p.tokens.get(key, 0) for w, p in zip(weights, pieces, strict=True))
        mine_s = sum(w * p.flying_s.get(key, 0.0) for w, p in zip(weights, pieces, strict=True))
        mine_now_s = sum(w * p.flying_s.get(key, 0.0) for w, p in zip(now, pieces, strict=True))
        went[key] = Went(
            tokens_per_slot_s=tokens / mine_s if mine_s > 0 else 0.0,
            n_in_flight=mine_now_s / now_s,
            observed_tokens=sum(piece.tokens.get(key, 0) for piece in pieces),
        )
    flying = sum(each.n_in_flight for each in went.values())
    parts = blocks(pieces, weights, min(BLOCK_S, max(PIECE_S, observed_s / _N_BLOCKS)))
    slownesses = [slowness(block, curve) for block, _ in parts]
    counts = [weight for _, weight in parts]
    mean = sum(s * c for s, c in zip(slownesses, counts, strict=True)) / sum(counts)
    return Seen(
        observed_s=observed_s,
        n_changes=0,
        curve=curve,
        slowness=mean,
        slownesses=slownesses,
        weights=counts,
        running_ratio=running_ratio(pieces, weights, flying),
        went=went,
    )
