"""The hidden `worker`: one worker process, started by the service and never by hand.

Loads little: eight of them start at once, beside a service that waits for them.
"""

import logging
import os
from typing import Annotated

import typer

from app.cli.options import HomeOption
from app.core.types import WorkerId
from app.errors import LongwatchError, NotFoundError
from app.events import log_event
from app.ledger import runs, workers
from app.ledger.db import Ledger
from app.logs import configure_logging
from app.settings import PREFIX, Settings, load_settings
from app.worker.process import main


def add_commands(application: typer.Typer) -> None:
    """Register the command of this module."""
    application.command(hidden=True)(worker)


def worker(
    worker_id: Annotated[int, typer.Option("--worker-id", envvar=f"{PREFIX}WORKER_ID")],
    parent_pid: Annotated[int, typer.Option("--parent-pid", envvar=f"{PREFIX}PARENT_PID")],
    home: HomeOption = None,
) -> int:
    """Run one registered worker: started by the service, never by hand."""
    settings = load_settings(home=home)
    if not (settings.home / "ledger.db").exists():
        raise NotFoundError(f"there is no ledger in {settings.home.absolute()}")
    configure_logging(
        settings.home / "logs" / f"{_log_name(settings, WorkerId(worker_id))}.log",
        settings.log_cap_mb,
        logging.INFO,
    )
    code = main(settings, worker_id, parent_pid, log_event)
    # All is written, settled and closed. Taking the interpreter apart would take longer than that:
    # eight workers at once make a service wait a second for it.
    logging.shutdown()
    os._exit(code)


def _log_name(settings: Settings, worker_id: WorkerId) -> str:
    """Return a name that the partition's next worker shares, so that files do not pile up."""
    ledger = Ledger(settings.home / "ledger.db")
    try:
        partition_id = workers.get_worker(ledger, worker_id).partition_id
        partition = runs.get_partition(ledger, partition_id)
    except LongwatchError:
        return "worker"
    finally:
        ledger.close()
    return f"worker-{partition.run_id}-{partition.name}"
