"""GET routes of samples: pages in input order, one sample whole, and files by id only (sec-05)."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from app.api.schemas_samples import OneSampleAnswer, SamplesAnswer
from app.ledger import browsing
from app.ledger.one_sample import whole_sample
from tests.api.home import Home

SAMPLES = "/api/v1/runs/night/samples"


async def page(client: httpx.AsyncClient, **query: object) -> dict[str, Any]:
    given = {"partition": "B1_chat", **query}
    answer = await client.get(SAMPLES, params={key: str(value) for key, value in given.items()})
    assert answer.status_code == 200, answer.text
    SamplesAnswer.model_validate_json(answer.content)
    value: dict[str, Any] = answer.json()
    return value


async def all_keys(client: httpx.AsyncClient, **query: object) -> list[str]:
    """Follow `next_after` to the end."""
    keys: list[str] = []
    after = -1
    for _ in range(100):
        found = await page(client, after=after, **query)
        keys += [each["key"] for each in found["samples"]]
        if found["next_after"] is None:
            return keys
        assert found["next_after"] > after
        after = found["next_after"]
    raise AssertionError("the pages do not end")


def keys(*numbers: int) -> list[str]:
    return [f"a{n}" for n in numbers]


async def test_pages_follow_the_input_order(client: httpx.AsyncClient) -> None:
    first = await page(client, limit=4)
    assert [each["key"] for each in first["samples"]] == keys(0, 1, 2, 3)
    assert (first["partition"], first["next_after"]) == ("B1_chat", 3)
    assert await all_keys(client, limit=4) == keys(*range(10))
    assert await all_keys(client, limit=10) == keys(*range(10))


async def test_a_sample_in_a_list_says_what_became_of_it(
    client: httpx.AsyncClient, home: Home
) -> None:
    home.keep("B1_chat", 1, tokens=50)
    home.fail("B1_chat", 1, reason="500 boom")
    kept, failed, pending = (await page(client, limit=3))["samples"]
    assert (kept["state"], kept["output_tokens"], kept["finish_reason"]) == ("ok", 50, "stop")
    assert (failed["state"], failed["reason"], failed["charged"]) == ("failed", "500 boom", 1)
    assert (pending["state"], pending["attempt"], pending["flags"]) == ("pending", 0, [])
    assert kept["prompt_tokens"] == 4


@pytest.mark.parametrize("window", [1, 2, 3, 1_000])
async def test_every_sample_of_a_state_is_found_whatever_the_window(
    client: httpx.AsyncClient, home: Home, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    home.keep("B1_chat", 3)
    home.fail("B1_chat", 4)
    home.claim("B1_chat", 2)
    monkeypatch.setattr(browsing, "WINDOW", window)
    for limit in (1, 2, 100):
        assert await all_keys(client, state="ok", limit=limit) == keys(0, 1, 2)
        assert await all_keys(client, state="failed", limit=limit) == keys(3, 4, 5, 6)
        assert await all_keys(client, state="running", limit=limit) == keys(7, 8)
        assert await all_keys(client, state="pending", limit=limit) == keys(9)
        assert await all_keys(client, state="rejected", limit=limit) == []


async def test_pending_samples_are_found_before_they_have_ids(
    client: httpx.AsyncClient, home: Home
) -> None:
    home.keep("B1_chat", 3)
    with home.ledger.write() as connection:
        connection.execute(text("UPDATE sample SET claim_rank = NULL WHERE state = 'pending'"))
        connection.execute(text("UPDATE partition SET intake = 'scanned'"))
    assert await all_keys(client, state="pending", limit=2) == keys(*range(3, 10))


async def test_a_short_page_says_where_to_go_on(
    client: httpx.AsyncClient, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.keep("B1_chat", 8)
    with home.ledger.write() as connection:
        connection.execute(
            text("UPDATE sample SET state = 'truncated' WHERE key = 'a6' AND state = 'ok'")
        )
        connection.execute(
            text("UPDATE partition SET n_ok = n_ok - 1, n_truncated = 1 WHERE name = 'B1_chat'")
        )
    monkeypatch.setattr(browsing, "WINDOW", 4)
    first = await page(client, state="truncated")
    assert (first["samples"], first["next_after"]) == ([], 3)
    second = await page(client, state="truncated", after=3)
    assert [each["key"] for each in second["samples"]] == ["a6"]


async def test_the_partition_is_left_out_where_there_is_only_one(
    client: httpx.AsyncClient, home: Home
) -> None:
    refused = await client.get(SAMPLES)
    assert refused.status_code == 422
    assert "B1_chat, B2_code" in refused.json()["error"]["hint"]
    home.names = ("B5_only",)
    home.add_run("single")
    found = (await client.get("/api/v1/runs/single/samples")).json()
    assert (found["partition"], len(found["samples"])) == ("B5_only", 10)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("partition=B9", 404),
        ("partition=B1_chat&state=stuck", 422),
        ("partition=B1_chat&limit=0", 422),
        ("partition=B1_chat&limit=1001", 422),
        ("partition=B1_chat&after=-2", 422),
        (f"partition=B1_chat&after={2**70}", 422),
        ("partition=B1_chat&after=now", 422),
    ],
)
async def test_what_cannot_be_asked_is_refused(
    client: httpx.AsyncClient, query: str, status: int
) -> None:
    answer = await client.get(f"{SAMPLES}?{query}")
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


# -- one sample -------------------------------------------------------------------------------


async def one(client: httpx.AsyncClient, sample: int, run: str = "night") -> dict[str, Any]:
    answer = await client.get(f"/api/v1/runs/{run}/samples/{sample}")
    assert answer.status_code == 200, answer.text
    OneSampleAnswer.model_validate_json(answer.content)
    value: dict[str, Any] = answer.json()
    return value


async def ids(client: httpx.AsyncClient) -> list[int]:
    return [each["id"] for each in (await page(client))["samples"]]


async def test_one_sample_has_its_answer_and_its_attempts(
    client: httpx.AsyncClient, home: Home
) -> None:
    home.keep("B1_chat", 2)
    home.fail("B1_chat", 1, reason="500 boom")
    first, second, third, fourth, *_ = await ids(client)
    assert (await one(client, first))["answer"] == {"id": "a0"}
    assert (await one(client, second))["answer"] == {"id": "a1"}
    assert (await one(client, second))["answer_missing_because"] is None
    failed = await one(client, third)
    assert failed["answer"] is None
    assert failed["answer_missing_because"] == "it has no answer yet; it is failed"
    (attempt,) = failed["attempts"]
    assert (attempt["attempt"], attempt["reason"]) == (1, "500 boom")
    assert attempt["is_charged"] is True
    untouched = await one(client, fourth)
    assert (untouched["attempts"], untouched["checkpoint_tokens"]) == ([], 0)
    assert untouched["max_new_tokens"] == 100


async def test_the_length_of_a_checkpoint_is_told(client: httpx.AsyncClient, home: Home) -> None:
    (claim,) = home.claim("B1_chat", 1)
    home.beat("B1_chat", gains=(home._gain(claim, 7),))
    sample = await one(client, claim.sample_id)
    assert (sample["checkpoint_tokens"], sample["held_tokens"], sample["checkpoints"]) == (7, 7, 1)


async def test_a_sample_of_another_run_is_not_found(client: httpx.AsyncClient, home: Home) -> None:
    home.add_run("second")
    first, *_ = await ids(client)
    answer = await client.get(f"/api/v1/runs/second/samples/{first}")
    assert answer.status_code == 404
    assert f"no sample with the id {first}" in answer.json()["error"]["message"]


@pytest.mark.parametrize("number", ["0", str(2**63 - 1), str(2**63), "9" * 5000])
async def test_a_number_that_no_sample_has_is_not_found(
    client: httpx.AsyncClient, number: str
) -> None:
    answer = await client.get(f"/api/v1/runs/night/samples/{number}")
    assert answer.status_code == 404


def shard(home: Home) -> Path:
    (path,) = (home.output_dir / "B1_chat").glob("responses-*.jsonl")
    return path


def point_to(home: Home, path: Path) -> None:
    with home.ledger.write() as connection:
        connection.execute(text("UPDATE shard SET path = :path"), {"path": str(path)})


async def test_a_line_that_is_gone_is_said(client: httpx.AsyncClient, home: Home) -> None:
    home.keep("B1_chat", 2)
    first, second, *_ = await ids(client)
    shard(home).write_bytes(b'{"id":"a9"}\n')
    told = await one(client, first)
    assert told["answer"] is None
    assert "is not of the sample a0" in told["answer_missing_because"]
    assert "ends" in (await one(client, second))["answer_missing_because"]
    shard(home).unlink()
    assert "is not there" in (await one(client, first))["answer_missing_because"]


async def test_sec_05_no_byte_of_a_file_outside_the_run_folder_is_sent(
    client: httpx.AsyncClient, home: Home, tmp_path: Path
) -> None:
    home.keep("B1_chat", 1)
    first, *_ = await ids(client)
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(shard(home).read_bytes())
    link = home.output_dir / "B1_chat" / "link.jsonl"
    link.symlink_to(outside)
    for path in (outside, link, home.output_dir / "B1_chat" / ".." / ".." / "outside.jsonl"):
        point_to(home, path)
        told = await one(client, first)
        assert told["answer"] is None
        assert "does not lie in the output folder" in told["answer_missing_because"]
    within = home.output_dir / "B1_chat" / "other.jsonl"
    within.symlink_to(shard(home))
    point_to(home, within)
    assert (await one(client, first))["answer"] == {"id": "a0"}  # a link that stays inside


@pytest.mark.parametrize(
    "name",
    [
        "../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "%2e%2e/ledger.db",
        "%2e%2e%2fledger.db",
        "responses-1-1-1.jsonl",  # a real one: files are offered by the sample's id only
    ],
)
async def test_sec_05_a_name_is_no_way_to_a_file(
    client: httpx.AsyncClient, home: Home, name: str
) -> None:
    home.keep("B1_chat", 1)
    for path in (f"{SAMPLES}/{name}", f"/api/v1/runs/{name}/samples", f"/api/v1/{name}"):
        answer = await client.get(httpx.URL(f"http://127.0.0.1:8400{path}"))
        assert 400 <= answer.status_code < 500, path
        assert b"root:" not in answer.content
        assert b"SQLite" not in answer.content


async def test_a_line_is_found_where_sealing_has_just_moved_it(
    client: httpx.AsyncClient, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is asked again when the file that it named is gone meanwhile."""
    home.keep("B1_chat", 1)
    first, *_ = await ids(client)
    before = shard(home)
    looks: list[int] = []

    def seal_behind(*given: Any) -> Any:
        found = whole_sample(*given)
        if not looks:
            sealed = home.output_dir / "B1_chat" / "responses.jsonl"
            before.rename(sealed)
            point_to(home, sealed)
        looks.append(1)
        return found

    monkeypatch.setattr("app.api.looking_at_samples.whole_sample", seal_behind)
    assert (await one(client, first))["answer"] == {"id": "a0"}
    assert len(looks) == 2
