"""The `longwatch` command: which commands there are, and how errors leave it.

Invariant: whatever happens, there is one message and no traceback; bad usage is exit code 1.
What nobody foresaw goes to the home's log with its traceback, if a log is open.
"""

import importlib
import logging
import sys
from collections.abc import Sequence

import typer

from app.cli.options import EXIT_ERROR, EXIT_STOPPED
from app.cli.voice import complain, complain_of, flush
from app.errors import LongwatchError

# whichever module the installed typer keeps its click in
_CLICK_ERROR: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


# in the order of the help; each module adds its commands
_MODULES = {
    "run": "running", "serve": "running", "demo": "demo", "status": "status", "check": "checking",
    "prepare": "prepare",
    "pause": "orders", "drain": "orders", "resume": "orders", "stop": "orders", "retry": "orders",
    "concurrency": "orders", "budget": "orders", "goal": "orders", "deadline": "orders",
    "add": "adding", "adopt": "adopting", "extend": "extending", "export": "export",
    "merge": "merge", "report": "report", "forecast": "forecast",
    "notify-test": "notifying", "assets": "assets", "token": "token",
    "simulate": "simulate", "worker": "worker",
}  # fmt: skip


def make_application(command: str | None = None) -> typer.Typer:
    """Return the application with that command, or with all where it is not known."""
    application = typer.Typer(
        name="longwatch",
        help="Runs and watches generation jobs that last days: nothing lost, nothing twice.",
        epilog="Example: longwatch demo\n\nEvery flag has its twin LONGWATCH_… in the environment.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    application.callback()(_root)
    wanted = [_MODULES[command]] if command in _MODULES else dict.fromkeys(_MODULES.values())
    for name in wanted:  # only what is needed: a worker must not load the API
        importlib.import_module(f"app.cli.{name}").add_commands(application)
    return application


def _root() -> None:
    """Keep `longwatch COMMAND` the form, however many commands are loaded."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = make_application(words[0] if words else None)(
            args=words or ["--help"], prog_name="longwatch", standalone_mode=False
        )
    except LongwatchError as error:
        complain_of(error)
        return EXIT_ERROR
    except _CLICK_ERROR as error:
        complain(f"error: {_usage(error)}")
        return EXIT_ERROR
    except (KeyboardInterrupt, typer.Abort):
        complain("stopped")
        return EXIT_STOPPED
    except Exception as error:
        if logging.getLogger().handlers:
            logging.getLogger("longwatch").exception("internal error")
        complain(f"error: internal error, {type(error).__name__}: {error}. Please report it")
        return EXIT_ERROR
    finally:
        flush()
    return code if isinstance(code, int) else 0


def _usage(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    told = getattr(error, "format_message", error.__str__)().rstrip(".")
    path = getattr(context, "command_path", "longwatch")
    return f"{told}{'' if told.endswith('?') else '.'} See {path} --help"
