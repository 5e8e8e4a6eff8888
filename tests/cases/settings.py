"""The settings of the failure cases and ours: one table, and a stage built by it.

Owns the map of names, nothing of what they mean. Times are scaled by the test itself, which hands
in the scaled value. Case settings without a row here are met by design; the test says how.
"""

from pathlib import Path

from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import THINK_CLOSE_ID, THINK_OPEN_ID
from tests.stage import Stage

# Backoff between charged attempts, first of the doubling row: 1 s in life.
BACKOFF_FIRST_S = 0.05

# case setting -> (where it lives, its name there)
SETTINGS: dict[str, tuple[str, str]] = {
    "concurrency": ("stage", "concurrency"),  # the service writes it as the worker's share
    "max_new_tokens": ("stage", "max_new_tokens"),
    "output_token_budget": ("stage", "token_budget"),
    "max_attempts": ("plan", "max_attempts"),
    "request_timeout_s": ("plan", "request_timeout_s"),
    "think_open": ("plan", "think_open"),
    "think_close": ("plan", "think_close"),
}
# Settings of cases that have no counterpart, and why.
BY_DESIGN = {
    "stream": "every request streams; a server that answers in one piece is read too",
    "startup_wait_s": "a worker waits for its server without limit and says since when",
    "policy": "intake decides by what the server's context allows, before anything is sent",
}
_MARKS = {"<think>": THINK_OPEN_ID, "</think>": THINK_CLOSE_ID}


def stage_of(folder: Path, simulator: SimulatorThread, rows: list[str], **config: object) -> Stage:
    """Return a stage with these rows under the settings of a case."""
    for_stage: dict[str, object] = {}
    for_plan: dict[str, object] = {"backoff_first_s": BACKOFF_FIRST_S}
    for name, value in config.items():
        place, ours = SETTINGS[name]
        target = for_stage if place == "stage" else for_plan
        target[ours] = _MARKS.get(value, value) if isinstance(value, str) else value
    stage = Stage(folder, simulator.url, plan_changes=for_plan, **for_stage)  # type: ignore[arg-type]  # by the table
    stage.fill_rows(rows)
    return stage


def calls(simulator: SimulatorThread) -> dict[str, int]:
    """Return how many generate requests each row has had, by the row's id."""
    return {row.split(" ", 1)[0]: n for row, n in simulator.stats.calls.items()}
