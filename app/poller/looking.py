"""One look at one server: which route gives figures now, and whether it answers at all.

Owns the order of sources: /metrics, else /v1/loads, else none. Invariant: a look ends within
two seconds, whatever the server does.
"""

from dataclasses import dataclass

from app.errors import ServerError
from app.sglang.loads import read_loads
from app.sglang.metrics import read_metrics
from app.sglang.probe import Reply, ServerProbe, Silence
from app.sglang.reading import Reading

METRICS_S = 1.2
LOADS_S = 0.8
SIGN_S = 0.8
_ENABLE = "start the server with --enable-metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look found. `is_unavailable`: the server has no figures to give, now or later."""

    reading: Reading | None = None
    silence: Silence | None = None
    trouble: str = ""
    is_unavailable: bool = False
    is_good: bool = True


async def look_at(probe: ServerProbe) -> Seen:
    metrics = await probe.ask("/metrics", METRICS_S)
    if isinstance(metrics, Silence):
        return await _look_for_a_sign(probe, metrics)
    found = _from_metrics(metrics)
    if found.reading is not None:
        return found
    loads = await probe.ask("/v1/loads", LOADS_S)
    other = _from_loads(loads)
    if other.reading is not None:
        return other
    return Seen(
        trouble=f"no figures: {_both(found, other)}",
        is_unavailable=found.is_unavailable and other.is_unavailable,
        is_good=found.is_good or other.is_good,
    )


def _both(metrics: Seen, loads: Seen) -> str:
    """Say the one thing that matters: what fails, or that there is nothing to be had."""
    if not metrics.is_unavailable:
        return metrics.trouble
    if not loads.is_unavailable:
        return f"no /metrics, and {loads.trouble}"
    return f"{metrics.trouble}, {loads.trouble}; {_ENABLE}"


async def _look_for_a_sign(probe: ServerProbe, silence: Silence) -> Seen:
    """Tell a route that hangs from a server that does not answer at all."""
    if silence.is_refused:
        return Seen(silence=silence, is_good=False)
    sign = await probe.ask("/model_info", SIGN_S)
    if isinstance(sign, Silence):
        return Seen(silence=sign if sign.is_refused else silence, is_good=False)
    return Seen(trouble=f"/metrics: {silence.reason}", is_good=sign.is_ok or sign.is_missing)


def _from_metrics(reply: Reply) -> Seen:
    if not reply.is_ok:
        return _of_no_use(reply)
    try:
        reading = read_metrics(reply.body.decode("utf-8", "replace"))
    except ServerError as error:
        return Seen(trouble=error.message)
    if reading is None:
        return Seen(trouble="/metrics has no series of SGLang's", is_unavailable=True)
    return Seen(reading=reading)


def _from_loads(reply: Reply | Silence) -> Seen:
    if isinstance(reply, Silence):
        return Seen(trouble=f"/v1/loads: {reply.reason}", is_good=False)
    if not reply.is_ok:
        return _of_no_use(reply)
    try:
        reading = read_loads(reply.body)
    except ServerError as error:
        return Seen(trouble=error.message)
    if reading is None:
        return Seen(trouble="/v1/loads lists nothing", is_unavailable=True)
    return Seen(reading=reading)


def _of_no_use(reply: Reply) -> Seen:
    is_missing = reply.is_missing
    return Seen(trouble=reply.trouble, is_unavailable=is_missing, is_good=is_missing)
