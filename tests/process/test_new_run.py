"""A run that is begun in a browser, on a real service: checked, started once, finished, gone on."""

import html
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from app.simulator.server import SimulatorThread
from tests.cases.settings import calls
from tests.process.case_run import PARTITION, CaseRun
from tests.process.run_process import wait_for
from tests.process.serving import run_of, serving

ROWS = [f"a{n}" for n in range(20)]


def settings_of(run: CaseRun) -> dict[str, str]:
    return {
        "LONGWATCH_PROMPTS_ROOTS": str(run.folder / "prompts"),
        "LONGWATCH_OUTPUT_ROOTS": str(run.folder),
        "LONGWATCH_SERVER_URLS": run.server_url,
    }


def form_of(run: CaseRun, **changes: str) -> dict[str, str]:
    return {
        "name": "test",
        "prompts_dir": str(run.folder / "prompts"),
        "output_dir": str(run.output),
        "server_urls": run.server_url,
        "short_concurrency": "8",
        "short_max_new_tokens": "400",
        "partition": PARTITION,
        f"{PARTITION}:class": "short",
        **changes,
    }


def address_of(client: httpx.Client) -> str:
    return str(client.base_url).removesuffix("/api/v1/")


def reviewed(client: httpx.Client, fields: dict[str, str]) -> str:
    """Have a form checked to the end; return the address of its review."""
    client.headers["accept"] = "text/html"
    answer = client.post(f"{address_of(client)}/new", data=fields)
    assert answer.status_code == 303, answer.text
    address = address_of(client) + answer.headers["location"]
    wait_for(lambda: "Checking:" not in client.get(address).text, "the end of the check")
    return address


@pytest.mark.slow
def test_twenty_starts_from_two_tabs_begin_one_run_that_ends_well(
    run: CaseRun, simulator: SimulatorThread
) -> None:  # ui-04
    simulator.script({"*": ["ok"]})
    run.write_rows(ROWS)
    with serving(run, settings_of(run)) as client:
        tabs = [reviewed(client, form_of(run)) for _ in range(2)]
        assert not run.output.exists()
        assert run.n_runs() == 0

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda n: client.post(f"{tabs[n % 2]}/start"), range(20)))
        assert {each.status_code for each in answers} == {303}
        wait_for(lambda: run.n_runs() == 1, "the run")
        wait_for(lambda: 'href="/runs/1"' in client.get(tabs[0]).text, "the first tab to say so")
        wait_for(lambda: 'href="/runs/1"' in client.get(tabs[1]).text, "the second tab too")
        wait_for(lambda: run_of(client)["state"] == "finished", "the end of the run")

        said = html.unescape(client.get(reviewed(client, form_of(run))).text)
        assert 'Run 1 has the name "test" already and is finished: Start goes on' in said
    run.assert_whole(ROWS)
    assert run.n_runs() == 1
    assert set(calls(simulator).values()) == {1}
