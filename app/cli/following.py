"""A run that another process serves: submitted by the API, then looked at until it ends."""

import json
import sys
import threading

from app.cli.foreground import figures_end
from app.cli.options import EXIT_STOPPED
from app.cli.remote import Api
from app.cli.voice import complain, say
from app.core.format import one_line
from app.core.spec import RunSpec, to_json
from app.core.states import RunState
from app.errors import LongwatchError
from app.figures import RunFigures, from_json
from app.terminal import open_display

_LOOK_EVERY_S = 1.0
_TRIES = 30
_ENDED = (RunState.FINISHED, RunState.STOPPED)


def run_by_service(api: Api, spec: RunSpec, *, accept_changes: bool) -> int:
    """Submit the spec to the living service and follow its run."""
    say(f"A service lives on this home at {api.address}: the run is given to it.")
    body = {"spec": json.loads(to_json(spec)), "accept_changes": accept_changes}
    answer = api.post("/runs", body, timeout_s=None)
    for line in answer["messages"]:
        say(str(line))
    say(f'Run {answer["id"]} "{one_line(answer["name"])}" writes to {spec.output_dir}')
    return follow(api, int(answer["id"]))


def follow(api: Api, run_id: int) -> int:
    """Show the run until it ends; Ctrl-C only stops the looking."""
    display = open_display(sys.stdout)
    try:
        while True:
            figures = _look(api, run_id)
            display.show(figures)
            if figures.state in _ENDED:
                display.close()
                return figures_end(figures)
            threading.Event().wait(_LOOK_EVERY_S)
    except KeyboardInterrupt:
        display.close()
        say("Not following any longer; the run goes on. Look with: longwatch status")
        return EXIT_STOPPED


def _look(api: Api, run_id: int) -> RunFigures:
    """Return the figures; a service that does not answer is asked again for half a minute."""
    for left in range(_TRIES, 0, -1):
        try:
            return from_json(api.get(f"/runs/{run_id}"))
        except LongwatchError as error:
            if left == 1:
                raise
            if left == _TRIES:
                complain(f"{error}; asking again")
            threading.Event().wait(_LOOK_EVERY_S)
    raise AssertionError("unreachable")
