"""`longwatch serve` as a process, and a client of its API. Ended by its pid with the test."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from app.core.spec import to_json
from app.files.spec_files import load_spec
from app.ledger.lock import living_service
from tests.process.case_run import HANG_S
from tests.process.run_process import ROOT, RunProcess, wait_for


@contextmanager
def serving(
    run: RunProcess, environment: Mapping[str, str] | None = None
) -> Iterator[httpx.Client]:
    """Serve the run's home in a process of its own; `run.process` is that process meanwhile.

    The client's paths are below `/api/v1`; one that begins with http is taken as it is.
    """
    command = [sys.executable, "-m", "app", "serve", "--home", str(run.home), "--port", "0"]
    with (run.folder / "run.log").open("ab") as log:
        run.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=log,
            stderr=log,
            env={**os.environ, **run.environment, **(environment or {})},
        )
    wait_for(lambda: _address(run), "the service to listen", HANG_S)
    token = (run.home / "token").read_text().strip()
    try:
        with httpx.Client(
            base_url=f"{_address(run)}/api/v1",
            headers={"authorization": f"Bearer {token}"},
            trust_env=False,
            timeout=HANG_S,
        ) as client:
            yield client
    finally:
        if run.process is not None:
            run.process.send_signal(signal.SIGTERM)
            run.wait(HANG_S)


def _address(run: RunProcess) -> str:
    if not run.is_alive():
        raise AssertionError(run.log_tail())
    holder = living_service(run.home)
    return holder.address if holder is not None else ""


def submission(run: RunProcess) -> dict[str, Any]:
    """Return the body that submits the run's spec as it is written now."""
    return {"spec": json.loads(to_json(load_spec(run.spec)))}


def run_of(client: httpx.Client, name: str = "test") -> dict[str, Any]:
    answer = client.get(f"/runs/{name}")
    assert answer.status_code == 200, answer.text
    value: dict[str, Any] = answer.json()
    return value
