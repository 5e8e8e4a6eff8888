"""The test message over the API: who may ask for it, and that no address comes with it."""

import httpx

from app.notifying import Told
from tests.api.conftest import PORT, Door

PATH = "/api/v1/notify-test"
TOLD = (
    Told(target="webhook hooks.example", is_ok=True, said="HTTP 200"),
    Told(target="command tell.sh", is_ok=False, said="exit code 3"),
)


async def test_every_target_answers_for_itself(client: httpx.AsyncClient, door: Door) -> None:
    door.told = TOLD
    answer = await client.post(PATH)
    assert answer.status_code == 200
    assert answer.json() == {
        "is_ok": False,
        "targets": [
            {"target": "webhook hooks.example", "is_ok": True, "said": "HTTP 200"},
            {"target": "command tell.sh", "is_ok": False, "said": "exit code 3"},
        ],
    }
    assert door.testers == ["operator (API)"]


async def test_without_a_target_it_says_what_to_set(client: httpx.AsyncClient, door: Door) -> None:
    answer = await client.post(PATH)
    assert answer.status_code == 409
    assert "LONGWATCH_NOTIFY_URL" in answer.json()["error"]["hint"]
    assert door.testers == []


async def test_sec_06_no_address_is_taken(client: httpx.AsyncClient, door: Door) -> None:
    door.told = TOLD[:1]
    address = "http://169.254.169.254/latest"
    answer = await client.post(f"{PATH}?url={address}", json={"url": address, "target": address})
    assert answer.json()["targets"][0]["target"] == "webhook hooks.example"
    assert "169.254" not in answer.text


async def test_sec_03_others_cannot_ask_for_it(
    client: httpx.AsyncClient, anybody: httpx.AsyncClient, door: Door
) -> None:
    door.told = TOLD
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert (await client.post(PATH, headers=headers)).status_code == 403
    assert (await client.get(PATH)).status_code == 405
    del anybody.headers["authorization"]
    assert (await anybody.post(PATH)).status_code == 401
    assert (await anybody.post(PATH, headers={"origin": f"http://127.0.0.1:{PORT}"})).status_code
    assert door.testers == []
