"""`check`: what a start would refuse, also of home and output; it leaves nothing behind."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from app.simulator.server import SimulatorThread
from tests.cli.conftest import Longwatch, Told
from tests.intake.desk import Desk, user


@dataclass(frozen=True)
class Checking:
    """A desk whose spec stands in a file as well, so that both submit the same run."""

    desk: Desk
    longwatch: Longwatch

    def __call__(self, *flags: str, defaults: str = "", name: str = "test", run: str = "") -> Told:
        desk = self.desk
        path = desk.folder / "spec.toml"
        path.write_text(
            f'[run]\nname = "{name}"\nserver_urls = ["{desk.spec.server_urls[0]}"]\n'
            f'prompts_dir = "prompts"\noutput_dir = "output"\n{run}\n[defaults]\n{defaults}\n'
            "[class.long]\nconcurrency = 8\nmax_new_tokens = 64\n"
        )
        return self.longwatch("check", str(path), *flags)


@pytest.fixture
def check(tmp_path: Path, longwatch: Longwatch) -> Iterator[Checking]:
    with SimulatorThread(port=0, instant=True) as simulator:
        desk = Desk(tmp_path, simulator)
        desk.write("p", [user("a", "x"), user("b", "y")])
        yield Checking(desk, longwatch)
        desk.ledger.close()


def test_a_good_spec_is_told_with_its_totals(check: Checking) -> None:
    check.desk.write("q", [*(user(f"k{n}", "x") for n in range(1_500)), {"id": "bad"}])

    told = check(defaults='token_budget = "2M"\nmax_samples = 1200')

    assert (told.code, told.error) == (0, "")
    rows = [line.split() for line in told.out.splitlines()]
    assert ["p", "2", "0", "long", "8", "shared", "64", "2,000,000", "1,200", "none"] in rows
    assert ["q", "1,500", "1", "long", "8", "shared", "64", "2,000,000", "1,200", "none"] in rows
    assert "2 partitions, 1,502 prompts (1 rejected)." in told.out
    assert told.out.endswith("would start.\n")


def test_json_holds_the_same_and_no_settings_of_the_service(check: Checking) -> None:
    found = json.loads(check("--json").out)

    assert found["ok"]
    assert found["totals"] == {"partitions": 1, "prompts": 2, "rejected": 0}
    assert found["partitions"][0]["max_new_tokens"] == 64
    assert "settings" not in found


def test_deadlines_are_shown_and_one_that_has_passed_is_refused(check: Checking) -> None:
    limits = '[partition.p]\ndeadline = "{}"\n'

    told = check(defaults=limits.format("08:00"), run='deadline = "+6h"')
    assert told.code == 0
    assert next(line for line in told.out.splitlines() if line.startswith("p ")).endswith("08:00")
    assert "deadline of the run +6h." in told.out

    past = "2024-01-01T08:00"
    for told in (check(run=f'deadline = "{past}"'), check(defaults=limits.format(past))):
        assert told.code == 1
        assert f'"{past}" has passed' in told.out
    asyncio.run(check.desk.submit())
    told = check(run=f'deadline = "{past}"')
    assert (told.code, f'deadline of the run: "{past}" has passed' in told.out) == (1, True)


def test_a_server_that_does_not_answer_is_told_at_once(check: Checking) -> None:
    check.desk.simulator.stop()

    told = check()

    url = check.desk.spec.server_urls[0]
    assert told.code == 1
    assert f"error: {url} does not answer (connection refused). Start the server first" in told.out
    assert told.error == ""  # no counter: it was not waited for


async def _changed_settings(desk: Desk) -> str:
    await desk.submit()
    return 'run "test" was started otherwise: temperature not set -> 0.5'


async def _changed_prompts(desk: Desk) -> str:
    await desk.submit()
    desk.write("p", [user("a", "other")])
    return "the prompts of p changed since the run took them in (2 records then"


async def _foreign_home(desk: Desk) -> str:
    desk.output.mkdir()
    owner = {"home": "/elsewhere", "runs": {"1": {"name": "theirs", "partitions": ["p"]}}}
    (desk.output / ".longwatch.json").write_bytes(orjson.dumps(owner))
    return 'belongs to the home /elsewhere (runs "theirs")'


async def _foreign_answers(desk: Desk) -> str:
    (desk.output / "p").mkdir(parents=True)
    (desk.output / "p" / "responses.jsonl").write_bytes(b"{}\n")
    return "responses.jsonl is there already and belongs to no run of this home"


async def _another_run(desk: Desk) -> str:
    desk.change(name="first")
    await desk.submit()
    return 'already holds p of run 1 "first"'


@pytest.mark.parametrize(
    "prepare",
    [_changed_settings, _changed_prompts, _foreign_home, _foreign_answers, _another_run],
)
def test_what_home_and_output_forbid_is_told_and_nothing_is_written(
    check: Checking, prepare: Callable[[Desk], Coroutine[object, object, str]]
) -> None:
    expected = asyncio.run(prepare(check.desk))
    before = files_of(check.desk)

    told = check(defaults="temperature = 0.5" if prepare is _changed_settings else "")

    assert told.code == 1
    assert expected in told.out
    assert "would not start: 1 error." in told.out
    assert files_of(check.desk) == before


def files_of(desk: Desk) -> dict[Path, bytes]:
    """Return what lies in home and output; SQLite's own files beside the ledger come and go."""
    return {
        path: path.read_bytes()
        for folder in (desk.home, desk.output)
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("ledger.db")
    }


def test_a_run_that_would_go_on_as_it_was_passes(check: Checking) -> None:
    asyncio.run(check.desk.submit())

    told = check()

    assert (told.code, told.error) == (0, "")
    assert told.out.endswith("would start.\n")
