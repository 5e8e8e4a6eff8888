"""What people see of an adopted answer: on its page, in the API, and in no speed."""

import asyncio
from pathlib import Path

import orjson
import pytest

from app.cli import main
from tests.api.conftest import Door
from tests.api.home import Home
from tests.web.test_actions import somebody


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_sample_tells_that_it_was_taken_over(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGWATCH_HOME", str(home.folder))
    path = tmp_path / "old" / "B1_chat.jsonl"
    path.parent.mkdir()
    line = {"id": "a0", "output_ids": [7, 8], "text": "so it is", "finish_reason": "stop"}
    path.write_bytes(orjson.dumps(line) + b"\n")

    assert main(["adopt", "night", str(path.parent), "--yes"]) == 0

    door = Door(home)
    page, told, listed = asyncio.run(
        _asked(home, door, "/runs/1/samples/1", "/api/v1/runs/1/samples/1", "/runs/1/activity")
    )
    assert "adopted" in page
    assert "so it is" in page
    assert "an earlier script" in page
    assert "adopt" in listed
    answer = orjson.loads(told)
    assert answer["state"] == "ok"
    assert (answer["answer"]["attempts"], answer["answer"]["flags"]) == (0, ["adopted"])
    (partition, _) = door.figures(home.run_id).partitions
    assert partition.tokens.kept == partition.tokens.received == 2
    assert not partition.speed_tokens_per_s
    home.ledger.close()


async def _asked(home: Home, door: Door, *addresses: str) -> list[str]:
    async with somebody(home, door) as client:
        answers = [await client.get(address) for address in addresses]
    assert [each.status_code for each in answers] == [200] * len(addresses)
    return [each.text for each in answers]
