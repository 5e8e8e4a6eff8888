"""The `longwatch` command: which commands there are, and how errors leave it.

Invariant: whatever happens, there is one message and no traceback; bad usage is exit code 1.
What nobody foresaw goes to the home's log with its traceback, if a log is open.
"""

import logging
import sys
from collections.abc import Sequence

import typer

from app.cli.demo import add_demo
from app.cli.export import add_export
from app.cli.machinery import add_machinery
from app.cli.options import EXIT_ERROR, EXIT_STOPPED
from app.cli.orders import add_orders
from app.cli.running import add_running
from app.cli.status import add_looks
from app.cli.voice import complain, complain_of, flush
from app.errors import LongwatchError

# whichever module the installed typer keeps its click in
_CLICK_ERROR: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def make_application() -> typer.Typer:
    application = typer.Typer(
        name="longwatch",
        help="Runs and watches generation jobs that last days: nothing lost, nothing twice.",
        epilog="Example: longwatch demo\n\nEvery flag has its twin LONGWATCH_… in the environment.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for add in (add_running, add_looks, add_orders, add_export, add_demo, add_machinery):
        add(application)
    return application


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = make_application()(
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
        logging.getLogger("longwatch").exception("internal error")
        complain(f"error: internal error, {type(error).__name__}: {error}. Please report it")
        return EXIT_ERROR
    finally:
        flush()
    return code if isinstance(code, int) else 0


def _usage(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    told = getattr(error, "format_message", error.__str__)()
    path = getattr(context, "command_path", "longwatch")
    return f"{told.rstrip('.')}. See {path} --help"
