"""A run that another process serves: submitted by the API, then looked at until it ends.

Owns what happens when that process leaves first: its own run is over, somebody stopped it, it died.
What the ledger then says decides, so that no run that has ended is told as an error.
"""

import json
import sys
import threading

from app.cli.foreground import figures_end
from app.cli.options import EXIT_STOPPED
from app.cli.remote import Api, open_ledger
from app.cli.voice import complain, say
from app.clock import SystemClock
from app.controls import find_run
from app.core.format import one_line
from app.core.spec import RunSpec, to_json
from app.core.states import RunState
from app.errors import LongwatchError
from app.figures import RunFigures, collect, from_json
from app.ledger.lock import living_service
from app.settings import Settings
from app.terminal import open_display

_LOOK_EVERY_S = 1.0
_TRIES = 30
_ENDED = (RunState.FINISHED, RunState.STOPPED)


def run_by_service(
    settings: Settings, api: Api, spec: RunSpec, *, accept_changes: bool
) -> int | None:
    """Submit the spec to the living service and follow its run; None if the service left first."""
    say(f"A service lives on this home at {api.address}: the run is given to it.")
    body = {"spec": json.loads(to_json(spec)), "accept_changes": accept_changes}
    answer = api.post("/runs", body, timeout_s=None)
    for line in answer["messages"]:
        say(str(line))
    say(f'Run {answer["id"]} "{one_line(answer["name"])}" writes to {spec.output_dir}')
    return _follow(settings, api, int(answer["id"]))


def _follow(settings: Settings, api: Api, run_id: int) -> int | None:
    """Show the run until it ends; Ctrl-C only stops the looking."""
    display = open_display(sys.stdout)
    try:
        while True:
            figures = _look(settings, api, run_id)
            if figures is None:
                display.close()
                say("The service has left before the end of the run: it goes on here.")
                return None
            display.show(figures)
            if figures.state in _ENDED:
                display.close()
                return figures_end(figures)
            threading.Event().wait(_LOOK_EVERY_S)
    except KeyboardInterrupt:
        display.close()
        say("Not following any longer; the run goes on. Look with: longwatch status")
        return EXIT_STOPPED


def _look(settings: Settings, api: Api, run_id: int) -> RunFigures | None:
    """Return the figures, None if the service has gone and the run has not ended.

    A service that lives and does not answer is asked again for half a minute.
    """
    for left in range(_TRIES, 0, -1):
        try:
            return from_json(api.get(f"/runs/{run_id}"))
        except LongwatchError as error:
            if living_service(settings.home) is None:
                return _as_it_ended(settings, run_id)
            if left == 1:
                raise
            if left == _TRIES:
                complain(f"{error}; asking again")
            threading.Event().wait(_LOOK_EVERY_S)
    raise AssertionError("unreachable")


def _as_it_ended(settings: Settings, run_id: int) -> RunFigures | None:
    ledger = open_ledger(settings.home)
    try:
        run = find_run(ledger, str(run_id))
        return collect(ledger, run, None, settings, SystemClock()) if run.state in _ENDED else None
    finally:
        ledger.close()
