"""The line of the disk: what is known is said, and nothing else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.ledger.servers import remember_server
from app.web.disk import Disk, said
from tests.api.conftest import Door
from tests.api.home import Home
from tests.web.test_actions import somebody

WHOLE = Disk(n_tokens=251_000_000, band=(240_000_000, 262_000_000), hidden_size=7_168)
TB = 10**12


def test_everything_that_is_known() -> None:
    assert said(replace(WHOLE, free_bytes=92 * TB // 10)) == (
        "Training data at the end: 251M tokens (240M to 262M) with prompts, 1.7 GB merged;"
        " hidden states (4 layers of 7,168, bf16) 14.4 TB, of 9.2 TB free: they do not fit"
    )


@pytest.mark.parametrize(
    ("free_tb", "is_least", "verdict"),
    [
        (20, False, " free: they fit"),
        (16, False, " free: they may not fit"),
        (15, False, " free: they do not fit"),
        (20, True, " free"),
        (15, True, " free: they do not fit"),
    ],
)
def test_whether_they_fit_is_said_once_it_is_known(
    free_tb: int, is_least: bool, verdict: str
) -> None:
    known = replace(WHOLE, free_bytes=free_tb * TB, is_least=is_least)
    assert said(known).endswith(f"{free_tb}.0 TB{verdict}")


def test_what_is_not_known_is_not_said() -> None:
    assert "fit" not in said(WHOLE)
    assert "hidden" not in said(replace(WHOLE, hidden_size=None, free_bytes=TB))
    assert " to " not in said(replace(WHOLE, band=None))
    assert "at least 251M" in said(replace(WHOLE, is_least=True))


async def test_the_overview_has_the_line_once_an_answer_is_measured(
    home: Home, door: Door, tmp_path: Path
) -> None:
    async with somebody(home, door) as client:
        assert "Training data" not in (await client.get("/runs/1")).text
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"hidden_size": 64}')
    facts = json.dumps({"model_path": str(model)})
    remember_server(home.ledger, home.server_url, facts, home.clock.now())
    home.keep("B1_chat", 3, tokens=50)
    async with somebody(home, door) as client:
        page = (await client.get("/runs/1")).text
    assert "Training data at the end: at least 540 tokens with prompts" in page
    assert "hidden states (4 layers of 64, bf16)" in page
    assert 'href="/api/v1/runs/1/forecast"' in page
