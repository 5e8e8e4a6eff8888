"""Cases of the API that need the whole service: orders at the same time, and times with a zone."""

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from app.simulator.server import SimulatorThread
from tests.api.paths import get_paths
from tests.cases.settings import calls
from tests.process.case_run import HANG_S, PARTITION, CaseRun, calls_since
from tests.process.run_process import wait_for
from tests.process.serving import run_of, serving, submission

OTHER = "B3_q"
ROWS = [f"a{n}" for n in range(20)]
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)")
MILLISECOND = timedelta(milliseconds=1)  # as fine as times are told
LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")


def storm(run: CaseRun, client: httpx.Client, *partitions: str) -> None:
    """Send twenty starts at the same time, with as many pauses and resumes between them."""
    orders: list[tuple[str, dict[str, Any]]] = [
        ("/runs", submission(run)),
        ("/runs/test/pause", {"partitions": partitions}),
        ("/runs/test/resume", {"partitions": partitions}),
    ]
    with ThreadPoolExecutor(20) as pool:
        sent = [
            pool.submit(client.post, path, json=body) for _ in range(20) for path, body in orders
        ]
        answers = [each.result() for each in sent]
    starts = [answer for answer in answers if answer.status_code == 201]
    assert len(starts) == 20
    assert {answer.json()["id"] for answer in starts} == {1}
    assert all(answer.status_code < 500 for answer in answers)
    refused = [answer.json()["error"] for answer in answers if answer.status_code >= 400]
    assert {error["code"] for error in refused} <= {"conflict", "not_found"}
    assert all(error["message"] for error in refused)


def assert_one_of_everything(run: CaseRun, client: httpx.Client) -> None:
    assert len(client.get("/runs").json()["runs"]) == 1
    assert len(run.worker_pids()) <= 1
    second = run.ask("serve", "--port", "0")
    assert second.returncode == 1
    assert "is in use by process" in second.stderr


def test_ui_04_start_pause_and_resume_at_the_same_time(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """The run does not exist before: one of the starts creates it, the others join it.

    A pause may take a request back that is under way, and then it is sent once more; such calls
    are those that the ledger counts as further attempts.
    """
    simulator.script({"*": ["ok"]})
    run.write_rows(ROWS)
    with serving(run) as client:
        storm(run, client)
        assert_one_of_everything(run, client)
        assert client.post("/runs/test/resume", json={}).status_code in (200, 409)
        wait_for(lambda: run_of(client)["state"] == "finished", "the end of the run", HANG_S)
        assert run_of(client)["samples"]["ok"] == 20
    attempts = [row["attempt"] for row in run.samples().values()]
    assert simulator.stats.calls_total == sum(attempts)
    run.assert_whole(ROWS)


@pytest.mark.slow
def test_ui_04_each_sample_is_sent_once(run: CaseRun, simulator: SimulatorThread) -> None:
    """Twenty calls for twenty samples, whose partition rests until all orders are given.

    Pauses and resumes are of another partition, so that none of them takes a request of it back.
    """
    simulator.script({"*": ["ok delay=60"]})
    run.write_rows(ROWS)
    run.write_rows(["b0", "b1"], OTHER)
    with serving(run) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        resting = {"partitions": [PARTITION]}
        assert client.post("/runs/test/pause", json=resting).status_code == 200
        wait_for(lambda: len(run.worker_pids()) == 1, "its worker to have left", HANG_S)
        before = calls(simulator)
        storm(run, client, OTHER)
        assert_one_of_everything(run, client)
        assert sent_since(simulator, before) == {}
        client.post("/runs/test/pause", json={"partitions": [OTHER]})
        wait_for(lambda: not run.worker_pids(), "the slow requests to be taken back", HANG_S)
        simulator.script({"*": ["ok"]})
        assert client.post("/runs/test/resume", json={}).status_code == 200
        wait_for(lambda: run_of(client)["state"] == "finished", "the end of the run", HANG_S)
        assert run_of(client)["partitions"][0]["samples"]["ok"] == 20
        assert sent_since(simulator, before) == dict.fromkeys(ROWS, 1)
    run.assert_whole(ROWS)


def sent_since(simulator: SimulatorThread, before: Mapping[str, int]) -> dict[str, int]:
    """Return how often each of the twenty was sent since."""
    return {key: n for key, n in calls_since(simulator, before).items() if key in ROWS}


@pytest.mark.parametrize(
    "zone",
    [
        "Asia/Kolkata",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("UTC", "America/New_York")),
    ],
)
def test_prg_04_every_time_has_its_offset_and_elapsed_is_right(
    run: CaseRun, simulator: SimulatorThread, zone: str
) -> None:
    """The zone of a browser is the page's; here the server's own zone changes."""
    simulator.script({"*": ["ok delay=60"]})
    run.write_rows(["a1 @@slow"])
    with serving(run, {"TZ": zone}) as client:
        before = datetime.now(UTC)
        assert client.post("/runs", json=submission(run)).status_code == 201
        answered = datetime.now(UTC)
        wait_for(lambda: run_of(client)["in_flight_requests"] == 1, "the request", HANG_S)
        root = str(client.base_url).removesuffix("/api/v1/")
        document = client.get("/openapi.json").json()
        found = 0
        for path in get_paths(document, run="test", sample=1, partition=PARTITION):
            answer = client.get(f"{root}{path}")
            assert answer.status_code == 200, (path, answer.text)
            if answer.headers["content-type"] == "application/json":
                for text in texts(answer.json()):
                    if LIKE_A_TIME.fullmatch(text):
                        assert ISO.fullmatch(text), (path, text)
                        found += 1
        assert found > 12
        figures = run_of(client)
    at, created_at = (datetime.fromisoformat(figures[name]) for name in ("at", "created_at"))
    assert before - MILLISECOND <= created_at <= answered
    assert created_at <= at <= datetime.now(UTC)


def texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in texts(each)]
