"""Partitions on one server as a fluid: who has how many slots, and when each comes to its end.

Owns the simulation. Its clock are decode steps: a step gives each running answer one token and
takes longer the more run. Partitions of a group share its slots; what the last answers of one
leave goes to the others at once; `after` waits until another has ended. Answers that the server
cannot hold wait in its queue, as many as it was seen to leave waiting. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.endgame import LIKELY_LEFT, Decline
from app.core.rates import StepCurve

_TINY = 1e-9
_MAX_EVENTS = 2_000
# the decline of a partition is walked in so many pieces
_LEFT_RATIOS = (1.0, 0.8, 0.6, 0.4, 0.25, 0.15, 0.08, 0.04, 0.02)
_N_NEWTON = 30
_ENOUGH = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One partition. `pace`: its speed per slot against what the others' says, 1 for the same.

    `mean_tokens`: of an answer; `hold_tokens`: what a running one holds of the server's memory.
    `fresh_tokens`: what the answers to be sent yet are expected to bring.
    """

    name: str
    group: str
    decline: Decline
    mean_tokens: float
    hold_tokens: float
    fresh_tokens: float = 0.0
    pace: float = 1.0
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the partitions run on. `wait_steps`: how long an answer waits in the queue at present.

    `held_tokens`: the memory in use while answers wait, None where none wait. `claims_tokens`: what
    the answers that are sent yet may bring together, None for all that there is.
    """

    limits: Mapping[str, float]
    curve: StepCurve
    slowness: float = 1.0
    wait_steps: float = 0.0
    held_tokens: float | None = None
    claims_tokens: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """When a partition ends, and how long a step takes then."""

    at_s: float
    step_s: float


class _State:
    """One partition in the simulation. `rest` are its slot-steps left as long as it sends."""

    def __init__(self, part: Part, bulk_factor: float) -> None:
        bulk = part.decline.bulk_steps * part.decline.slots * bulk_factor
        self.part = part
        self.rest = bulk + part.decline.slot_steps
        self.is_cut = bulk <= 0
        self.tokens_per_step = part.fresh_tokens / bulk if bulk > 0 else 0.0
        self.n = 0.0
        self.scale = 0.0
        self.place = 0
        self.pieces: list[tuple[float, float]] = []  # steps left in it, share of slots in flight
        self.end: End | None = None

    @property
    def sends(self) -> bool:
        return not self.pieces and not self.is_cut

    @property
    def bulk(self) -> float:
        """Return the slot-steps until the last is sent: with more slots the decline takes more."""
        if not self.sends:
            return 0.0
        curve = self.part.decline
        bulk = self.rest - curve.slot_steps * self.n / curve.slots
        return bulk if bulk > _TINY * self.rest else 0.0

    def begin_decline(self) -> None:
        """Cut the decline into pieces; with more slots than it was made for, it is higher."""
        curve = self.part.decline
        self.scale = first = curve.in_flight[0]
        if not self.is_cut:
            self.scale = min(self.n, self.rest / max(_TINY, curve.slot_steps) * curve.slots)
        marks = [ratio for ratio in _LEFT_RATIOS if ratio * self.scale > LIKELY_LEFT]
        marks.append(LIKELY_LEFT / max(self.scale, LIKELY_LEFT))
        at = [curve.steps_until(ratio * first) for ratio in marks]
        at[0] = 0.0
        self.pieces = [
            (at[i + 1] - at[i], (marks[i] + marks[i + 1]) / 2) for i in range(len(marks) - 1)
        ] or [(0.0, 0.0)]

    def settle(self) -> bool:
        """Go to the piece that lasts; return whether there is one."""
        while self.place < len(self.pieces) and self.pieces[self.place][0] <= _TINY:
            self.place += 1
        goes_on = self.place < len(self.pieces)
        self.n = self.pieces[self.place][1] * self.scale if goes_on else 0.0
        return goes_on

    def lasts(self, speed: float) -> float:
        """Return after how many steps something changes here."""
        return self.bulk / max(_TINY, speed) if self.sends else self.pieces[self.place][0]

    def walk(self, steps: float, speed: float) -> None:
        if self.sends:
            self.rest -= min(self.bulk, steps * speed)
        else:
            left, share = self.pieces[self.place]
            self.pieces[self.place] = (left - steps, share)


class _Simulation:
    """All partitions at one moment, `at_s` from now."""

    def __init__(
        self, parts: Sequence[Part], ground: Ground, bulk_factors: Sequence[float] | None
    ) -> None:
        factors = bulk_factors or [1.0] * len(parts)
        self.ground = ground
        self.states = [_State(part, f) for part, f in zip(parts, factors, strict=True)]
        self.claims = ground.claims_tokens
        self.at_s = 0.0
        self.step_s = 0.0
        if self.claims is not None and self.claims <= 0:
            self._claim_no_more()

    def going(self) -> list[_State]:
        over = {state.part.name for state in self.states if state.end is not None}
        return [
            state
            for state in self.states
            if state.end is None and (state.part.after is None or state.part.after in over)
        ]

    def begin_declines(self, going: Sequence[_State]) -> bool:
        """Let those that have sent their last decline; return whether there was one."""
        found = False
        for state in going:
            if not state.pieces and state.bulk <= 0:
                found = True
                state.begin_decline()
                if not state.settle():
                    state.end = End(at_s=self.at_s, step_s=self.step_s)
        return found

    def walk(self, going: Sequence[_State]) -> None:
        """Go on to the next change."""
        wait, self.step_s = _step(going, self.ground)
        speeds = [_bulk_speed(state, self.ground, wait) for state in going]
        pairs = list(zip(going, speeds, strict=True))
        steps = min(state.lasts(speed) for state, speed in pairs)
        claimed = sum(v * state.tokens_per_step for state, v in pairs if state.sends)
        is_last_claim = False
        if self.claims is not None and claimed > 0:
            is_last_claim = self.claims <= steps * claimed
            steps = min(steps, self.claims / claimed)
            self.claims -= steps * claimed
        self.at_s += steps * self.step_s
        for state, speed in pairs:
            state.walk(steps, speed)
            if state.pieces and not state.settle():
                state.end = End(at_s=self.at_s, step_s=self.step_s)
        if is_last_claim:
            self._claim_no_more()

    def _claim_no_more(self) -> None:
        self.claims = None
        for state in self.states:
            state.is_cut = True


def simulate(
    parts: Sequence[Part], ground: Ground, bulk_factors: Sequence[float] | None = None
) -> list[End]:
    """Return each partition's likely end, in the order given.

    `bulk_factors` scale what is left until the last fresh sample is sent.
    """
    now = _Simulation(parts, ground, bulk_factors)
    for _ in range(_MAX_EVENTS):
        going = now.going()
        if not going:
            break
        _give_slots(going, ground)
        if not now.begin_declines(going):
            now.walk(going)
    return [state.end or End(at_s=now.at_s, step_s=now.step_s) for state in now.states]


def _give_slots(going: Sequence[_State], ground: Ground) -> None:
    """Share each group's slots equally among those that still send, as `core/shares` does."""
    for group, limit in ground.limits.items():
        mine = [state for state in going if state.part.group == group]
        sending = [state for state in mine if state.sends]
        if sending:
            taken = sum(state.n for state in mine if not state.sends)
            each = max(_TINY, limit - taken) / len(sending)
            for state in sending:
                state.n = each


def _step(going: Sequence[_State], ground: Ground) -> tuple[float, float]:
    """Return how many steps an answer waits before it runs, and the seconds of a step."""
    wait = _wait_steps(going, ground)
    running = sum(s.n * s.part.mean_tokens / (s.part.mean_tokens + wait) for s in going)
    return wait, ground.slowness * ground.curve.step_s(running)


def _wait_steps(going: Sequence[_State], ground: Ground) -> float:
    """Return the wait at which those that run fill the memory that was seen to be full."""
    room = ground.held_tokens
    if room is None or ground.wait_steps <= 0:
        return 0.0
    terms = [(s.n * s.part.hold_tokens * s.part.mean_tokens, s.part.mean_tokens) for s in going]
    wait = 0.0
    # what is held falls ever slower as the wait grows: Newton's steps from 0 never overshoot
    for _ in range(_N_NEWTON):
        too_much, slope = -room, 0.0
        for product, mean in terms:
            share = product / (mean + wait)
            too_much += share
            slope += share / (mean + wait)
        if too_much <= _ENOUGH * room:
            break
        wait += too_much / slope
    return wait


def _bulk_speed(state: _State, ground: Ground, wait: float) -> float:
    """Return the slot-steps that a step takes off; they were counted at the present wait."""
    mean = state.part.mean_tokens
    return state.n * state.part.pace * (mean + ground.wait_steps) / (mean + wait)
