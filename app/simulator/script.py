"""The language in which a test says what the server answers to which row.

Owns the reading of a script and the choice of the action for a request: a marker `@@word` in the
prompt's text, else `*`, else the script's `default`. Pure but for the positions of the rows.
Invariant: the n-th request of a row gets the n-th entry, the last one repeats.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

from app.simulator.jobs import Fault, FaultOrder
from app.simulator.words import FIRST_WORD_ID

_MARKER = re.compile(r"@@[\w-]+")
_REPEATED = re.compile(r"^\s*\[([\d,\s]+)\]\s*\*\s*(\d+)\s*$")
_RANDOM_DELAY = re.compile(r"delay=random ([\d.]+)\.\.([\d.]+)(?: \(seed (\d+)\))?")
_DELAY = re.compile(r"delay=([\d.]+)")
_THEN_DELAY = re.compile(r"for first (\d+) rows, then delay=([\d.]+)")
_OUTPUT_TOKENS = re.compile(r"with (\d+) output tokens")
_THINKING_TOKENS = 40


class ScriptError(ValueError):
    """An entry that is not in the language."""


class Kind(StrEnum):
    ANSWER = "answer"
    JSON = "json"
    RAW = "raw"
    EVENTS = "events"
    CUT_BEFORE_HEADERS = "cut before_headers"
    CUT_MID_BODY = "cut mid_body"
    HANG = "hang"
    EXIT = "exit"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Seconds before an answer: fixed, drawn, or other ones after some rows."""

    low_s: float = 0.0
    high_s: float = 0.0
    random: Random | None = None
    first_rows: int | None = None
    then_s: float = 0.0

    def draw_s(self, served: int) -> float:
        if self.random is not None:
            return self.random.uniform(self.low_s, self.high_s)
        if self.first_rows is not None and served >= self.first_rows:
            return self.then_s
        return self.low_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    kind: Kind
    delay: Delay = field(default_factory=Delay)
    merge: Mapping[str, Any] = field(default_factory=dict)
    output_tokens: int | None = None
    ignores_disconnect: bool = False
    rejects_seen_rids: bool = False
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: Any = None
    events: tuple[Any, ...] = ()
    ends_properly: bool = True
    fault: FaultOrder | None = None


def expand(value: Any) -> Any:
    """Build the lists that strings such as `[36]*400` stand for, at any depth."""
    if isinstance(value, str):
        match = _REPEATED.match(value)
        if match:
            return [int(part) for part in match[1].split(",")] * int(match[2])
        return value
    if isinstance(value, Mapping):
        plain = {key: expand(part) for key, part in value.items()}
        if isinstance(plain.get("output_ids"), str) and "<think>" in plain["output_ids"]:
            plain["output_ids"] = [259, *range(FIRST_WORD_ID, FIRST_WORD_ID + _THINKING_TOKENS)]
        return plain
    if isinstance(value, list):
        return [expand(part) for part in value]
    return value


def _read_words(entry: str) -> Action:
    simple = {kind.value: kind for kind in Kind if kind not in (Kind.JSON, Kind.RAW, Kind.EVENTS)}
    if entry in simple:
        return Action(kind=simple[entry])
    if entry.startswith("reject"):
        return Action(kind=Kind.ANSWER, rejects_seen_rids=True)
    if entry != "ok" and not entry.startswith(("ok ", "ok,")):
        raise ScriptError(
            f"script entry {entry!r}: say ok, cut before_headers, cut mid_body, hang, exit, "
            "model, or an object with gen, fr, json, raw, sse, model, cut_after, hang_after, "
            "abort_after or gap_after"
        )
    tokens = _OUTPUT_TOKENS.search(entry)
    return Action(
        kind=Kind.ANSWER,
        delay=_read_delay(entry),
        ignores_disconnect="ignores disconnect" in entry,
        output_tokens=int(tokens[1]) if tokens else None,
    )


def _read_delay(entry: str) -> Delay:
    drawn = _RANDOM_DELAY.search(entry)
    if drawn:
        # A seeded generator of its own: the same script gives the same delays.
        generator = Random(int(drawn[3] or 0))  # noqa: S311 - no secret
        return Delay(low_s=float(drawn[1]), high_s=float(drawn[2]), random=generator)
    fixed, later = _DELAY.search(entry), _THEN_DELAY.search(entry)
    return Delay(
        low_s=float(fixed[1]) if fixed else 0.0,
        first_rows=int(later[1]) if later else None,
        then_s=float(later[2]) if later else 0.0,
    )


def _read_fault(entry: Mapping[str, Any]) -> FaultOrder:
    for fault in Fault:
        if f"{fault}_after" in entry:
            reason = {
                "type": "abort",
                "message": entry.get("message", "Aborted"),
                "status_code": entry.get("status_code"),
                "err_type": entry.get("err_type"),
            }
            return FaultOrder(
                fault=fault, after_tokens=int(entry[f"{fault}_after"]), finish_reason=reason
            )
    raise ScriptError(f"script entry {dict(entry)!r} is not in the language")


def _read_answer(entry: Mapping[str, Any], delay: Delay) -> Action | None:
    if "gen" in entry:
        return Action(kind=Kind.ANSWER, merge=expand(entry["gen"]), delay=delay)
    if "fr" in entry:
        merge = {"meta_info": {"finish_reason": entry["fr"]}}
        return Action(kind=Kind.ANSWER, merge=merge, delay=delay)
    return None


def _read_verbatim(entry: Mapping[str, Any], delay: Delay) -> Action | None:
    """Read what is sent as it stands."""
    headers = tuple((name, str(value)) for name, value in entry.get("headers", {}).items())
    if "json" in entry:
        status, body = entry["json"]
        return Action(kind=Kind.JSON, status=status, body=body, headers=headers, delay=delay)
    if "raw" in entry:
        return Action(kind=Kind.RAW, body=entry["raw"], headers=headers, delay=delay)
    if "sse" in entry:
        events = tuple(expand(list(entry["sse"])))
        proper = entry.get("end") != "eof"
        return Action(kind=Kind.EVENTS, events=events, ends_properly=proper, delay=delay)
    return None


def read_action(entry: str | Mapping[str, Any]) -> Action:
    if isinstance(entry, str):
        return _read_words(entry)
    delay = Delay(low_s=float(entry.get("delay", 0.0)))
    action = _read_answer(entry, delay) or _read_verbatim(entry, delay)
    if action is not None:
        return action
    fault = None if entry.get("model") is True else _read_fault(entry)
    return Action(kind=Kind.MODEL, fault=fault, delay=delay)


class Script:
    """Which action answers the next request of a row."""

    def __init__(self, entries: Mapping[str, Any] | None = None) -> None:
        self.actions: dict[str, list[Action]] = {}
        self.default: list[Action] | None = None
        self._places: dict[str, int] = {}
        for marker, given in (entries or {}).items():
            listed = (
                given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
            )
            actions = [read_action(entry) for entry in listed]
            if not actions:
                raise ScriptError(f"script entry for {marker!r} is empty")
            if marker == "default":
                self.default = actions
            else:
                self.actions[marker] = actions

    @property
    def rejects_seen_rids(self) -> bool:
        return any(
            action.rejects_seen_rids for listed in self.actions.values() for action in listed
        )

    def action_for(self, row: str, text: str) -> Action | None:
        """Return the action for the next request of the row; None leaves it to the model."""
        listed = self._listed(text)
        if listed is None:
            return None
        place = self._places.get(row, 0)
        if len(listed) > 1:
            self._places[row] = place + 1
        return listed[min(place, len(listed) - 1)]

    def _listed(self, text: str) -> list[Action] | None:
        if not self.actions and self.default is None:
            return None
        for marker in _MARKER.findall(text) if "@@" in text else ():
            if marker in self.actions:
                return self.actions[marker]
        return self.actions.get("*", self.default)
