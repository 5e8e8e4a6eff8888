"""The routes under /sim: counters, scripts, and faults of the whole server.

Owns what a test or the demo does to a running server from outside. Not part of SGLang.
"""

from collections.abc import Callable
from typing import Any

from app.simulator.machine import Machine
from app.simulator.refusals import BodyRefusedError
from app.simulator.script import Script

Reply = dict[str, Any]


def _stats(machine: Machine, _body: Reply) -> Reply:
    return machine.counters.snapshot() | {
        "frozen": machine.engine.frozen,
        "used_tokens": machine.engine.batch.used_tokens,
        "kv_tokens": machine.settings.kv_tokens,
    }


def _counters(machine: Machine, body: Reply) -> Reply:
    """Return the figures without the request log: cheap to poll."""
    return {name: value for name, value in _stats(machine, body).items() if name != "log"}


def _script(machine: Machine, body: Reply) -> Reply:
    """Take {"server": {...}, "endpoints": {...}}, or the mapping of markers alone."""
    if body.keys() <= {"server", "endpoints"}:
        server = body.get("server")
        machine.set_script(None if server is None else Script(server), body.get("endpoints"))
    else:
        machine.set_script(Script(body))
    return {"ok": True}


def _freeze(machine: Machine, _body: Reply) -> Reply:
    machine.engine.freeze()
    return {"ok": True}


def _unfreeze(machine: Machine, _body: Reply) -> Reply:
    machine.engine.unfreeze()
    return {"ok": True}


def _reset(machine: Machine, _body: Reply) -> Reply:
    machine.counters.reset()
    machine.set_script(Script(), {})
    machine.engine.unfreeze()
    return {"ok": True}


def _exit(machine: Machine, _body: Reply) -> Reply:
    machine.die()
    return {"ok": True}


def _set(machine: Machine, body: Reply) -> Reply:
    machine.change(body)
    return {"ok": True}


CONTROLS: dict[tuple[str, str], Callable[[Machine, Reply], Reply]] = {
    ("GET", "/sim/stats"): _stats,
    ("GET", "/sim/counters"): _counters,
    ("POST", "/sim/script"): _script,
    ("POST", "/sim/freeze"): _freeze,
    ("POST", "/sim/unfreeze"): _unfreeze,
    ("POST", "/sim/reset"): _reset,
    ("POST", "/sim/exit"): _exit,
    ("POST", "/sim/set"): _set,
}


def control(machine: Machine, method: str, path: str, body: Reply) -> Reply | None:
    """Return the reply of a control route; None if there is no such route."""
    order = CONTROLS.get((method, path))
    if order is None:
        return None
    try:
        return order(machine, body)
    except (TypeError, ValueError) as error:
        raise BodyRefusedError(400, {"error": str(error)}) from None
