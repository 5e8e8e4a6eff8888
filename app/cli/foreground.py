"""A service in the foreground: signals, the run it was started for, and how that ended.

Owns what a signal means: the first SIGINT or SIGTERM stops as a pause does, a second one skips the
grace time; SIGHUP never ends a run, and stays ignored where it was (prc-01, prc-02).
"""

import asyncio
import logging
import shlex
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from app.cli.options import EXIT_ERROR, EXIT_FAILED_SAMPLES, EXIT_OK, EXIT_STOPPED
from app.cli.voice import say
from app.clock import SystemClock
from app.core.conditions import SERVER_CHANGED, after_server_change
from app.core.format import one_line, plural
from app.core.spec import RunSpec
from app.core.states import RunState
from app.core.supervision import HALTED
from app.core.types import Counts
from app.core.views import RunView
from app.errors import InputError, LongwatchError, StorageError
from app.events import log_event
from app.figures import RunFigures, outcomes, total_counts
from app.files.ownership import probe_folder
from app.ledger.runs import partitions_of
from app.logs import configure_logging
from app.preflight import preflight
from app.preflight.folders import LEDGER_NAME
from app.reports import REJECTED_NAME
from app.service import Service
from app.settings import Settings
from app.submission import refusals
from app.terminal import Display, open_display

logger = logging.getLogger("longwatch")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
WHO = "operator (command line)"


@dataclass
class Signals:
    """What was asked for by signals. `hasten` is called at each one after the first."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    hasten: Callable[[], None] = lambda: None

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._note_hangup)

    def _stop(self, number: signal.Signals) -> None:
        if self.asked.is_set():
            logger.info("second %s: not waiting any longer", number.name)
            self.hasten()
            return
        logger.info("%s: stopping", number.name)
        self.asked.set()

    def _note_hangup(self) -> None:
        logger.warning("SIGHUP: the terminal is gone, the run goes on")


def check_binding(settings: Settings) -> None:
    """Refuse to be open to the network without a token of its own (sec-04)."""
    if settings.host not in _LOOPBACK and settings.token is None:
        raise InputError(
            f"--host {settings.host} is open to others and no token is set",
            hint="Set LONGWATCH_TOKEN, or listen on 127.0.0.1",
        )


def check_home(settings: Settings) -> None:
    """Refuse a home that cannot be written, before the log is opened in it (led-05)."""
    for folder in (settings.home.absolute(), settings.home.absolute() / "logs"):
        _probe(folder)


def _probe(folder: Path) -> None:
    problems = probe_folder(folder)
    if problems:
        raise StorageError("; ".join(problems), hint="Mend the rights, or give another --home")


def run_foreground(
    settings: Settings, spec: RunSpec | None, *, accept_changes: bool, stay: bool = False
) -> int:
    """Serve the home until the run of the spec has ended, or for good without one.

    `stay`: serve on after its end, until somebody asks for the end.
    """
    check_binding(settings)
    if _exists(settings.home):
        _probe(settings.home.absolute())
    is_new = not _exists(settings.home / LEDGER_NAME)
    if spec is not None and is_new and not asyncio.run(_may_begin(settings, spec)):
        say(_how_to_go_on(spec))
        return EXIT_STOPPED
    check_home(settings)
    log = configure_logging(settings.home / "logs" / "service.log", settings.log_cap_mb)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            served = _serve(settings, spec, accept_changes=accept_changes, stay=stay)
            return runner.run(served)
    except LongwatchError as error:
        logger.error("%s", error)  # noqa: TRY400 - it is told in words; no trace is needed
        raise
    except Exception:
        logger.exception("internal error")
        raise
    finally:
        log.close()
        logging.getLogger().removeHandler(log)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # it may not be entered: told by whoever opens it
        return True


async def _may_begin(settings: Settings, spec: RunSpec) -> bool:
    """Check the first run of a home before the home is made: what is refused leaves nothing.

    False if a signal came first; InputError tells everything that is wrong.
    """
    signals = Signals()
    signals.listen()
    clock = SystemClock()
    work = asyncio.create_task(preflight(spec, settings, clock, say))
    asked = asyncio.create_task(signals.asked.wait())
    await asyncio.wait({asked, work}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if not work.done():
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return False
    report = work.result()
    errors = report.errors or refusals(settings.home, spec, report, clock.now())
    if errors:
        raise InputError("\n".join(errors))
    return True


async def _serve(
    settings: Settings, spec: RunSpec | None, *, accept_changes: bool, stay: bool
) -> int:
    signals = Signals()
    signals.listen()
    display = open_display(sys.stdout)
    async with Service(settings, SystemClock(), log_event) as service:
        signals.hasten = service.skip_grace
        if settings.port and not service.address.endswith(f":{settings.port}"):
            say(f"Port {settings.port} is taken by another program; a free one serves.")
        say(f"Longwatch serves {settings.home.absolute()} at {service.address}")
        asked = asyncio.create_task(signals.asked.wait())
        work = asyncio.create_task(_work(service, spec, display, accept_changes=accept_changes))
        await asyncio.wait({asked, work}, return_when=asyncio.FIRST_COMPLETED)
        display.close()
        if work.done():
            code = _tell_end(service, work.result())
            if stay:
                say(f"The page stays at {service.address} until Ctrl-C.")
                await asked
            guests = asyncio.create_task(service.wait_for_guests(say))
            await asyncio.wait({asked, guests}, return_when=asyncio.FIRST_COMPLETED)
            guests.cancel()
            asked.cancel()
            return code
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        say("Stopping: what was made so far is kept. A second Ctrl-C does not wait.")
    say(_how_to_go_on(spec))
    return EXIT_STOPPED if spec is not None else EXIT_OK


async def _work(
    service: Service, spec: RunSpec | None, display: Display, *, accept_changes: bool
) -> RunView:
    if spec is None:
        return await asyncio.Future()
    run = await service.submit(
        spec, accept_changes=accept_changes, who=WHO, say=say, is_why_it_serves=True
    )
    say(f'Run {run.id} "{one_line(run.name)}" writes to {run.output_dir}')
    return await service.wait_for(run.id, display.show)


def _tell_end(service: Service, run: RunView) -> int:
    counts = {each.name: each.counts for each in partitions_of(service.ledger, run.id)}
    return tell_end(run.state, run.reason, counts, where=run.output_dir)


def tell_end(state: RunState, reason: str, counts: Mapping[str, Counts], *, where: str) -> int:
    """Say how a run ended; return the exit code that says the same."""
    if state is not RunState.FINISHED:
        because = f": {one_line(reason)}" if reason else ""
        is_changed = reason.removeprefix(HALTED).startswith(SERVER_CHANGED)
        go_on = "Go on with: longwatch resume, or start it again."
        say(
            f"The run is {state}{because}."
            f" {after_server_change('longwatch resume') if is_changed else go_on}"
        )
        return EXIT_ERROR if reason.startswith(HALTED) else EXIT_STOPPED
    total = total_counts(list(counts.values()))
    answers = f"{plural(total.kept, 'answer')} in {where}"
    unusual = "".join(f"; {one}" for one in _unusual(total, counts, where))
    if total.failed:
        failed = plural(total.failed, "failed sample")
        say(f"Finished with {failed}; {answers}{unusual}. See longwatch retry.")
        return EXIT_FAILED_SAMPLES
    say(f"Finished: {answers}{unusual}.")
    return EXIT_OK


def _unusual(total: Counts, counts: Mapping[str, Counts], where: str) -> list[str]:
    """Return what ended otherwise than it should, the rejected ones with their files."""
    said = outcomes(total)
    names = [name for name, each in counts.items() if each.rejected]
    if names:
        said[0] += f", see {where}/{names[0]}/{REJECTED_NAME}"
        said[0] += f" and those of {', '.join(names[1:])}" if names[1:] else ""
    return said


def figures_end(figures: RunFigures) -> int:
    """Say how a run ended that another process served."""
    counts = {each.name: each.counts for each in figures.partitions}
    return tell_end(figures.state, figures.reason, counts, where=figures.output_dir)


def _how_to_go_on(spec: RunSpec | None) -> str:
    if spec is None:
        return "The service has left. Runs go on when it is started again."
    return f"Stopped. Go on with: longwatch {shlex.join(sys.argv[1:])}"
