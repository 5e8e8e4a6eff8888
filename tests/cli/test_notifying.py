"""`notify-test`: by itself, by the service, and what it returns."""

import pytest

from app.notifying import Told
from tests.api.conftest import Door
from tests.api.home import Home
from tests.cli.conftest import Longwatch
from tests.notifying.receiver import receiving


def test_without_a_target_it_says_what_to_set(longwatch: Longwatch) -> None:
    told = longwatch("notify-test")
    assert told.code == 1
    assert "set LONGWATCH_NOTIFY_URL or LONGWATCH_NOTIFY_COMMAND".lower() in told.error.lower()


def test_without_a_service_it_sends_itself(
    longwatch: Longwatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving("200", "500") as receiver:
        monkeypatch.setenv("LONGWATCH_NOTIFY_URL", receiver.url)
        monkeypatch.setenv("LONGWATCH_NOTIFY_ALLOW", "127.0.0.0/8")
        monkeypatch.setenv("LONGWATCH_NOTIFY_COMMAND", "/bin/true a-secret")
        good, bad = longwatch("notify-test"), longwatch("notify-test")
    where = f"webhook 127.0.0.1:{receiver.port}"
    assert (good.code, good.error) == (0, "")
    assert good.out == (f"{where}: delivered, HTTP 200\ncommand true: delivered, exit code 0\n")
    assert bad.code == 1
    assert f"{where}: not delivered, HTTP 500" in bad.out
    assert "a-secret" not in good.out + bad.out
    assert receiver.told() == [("test", "test")] * 2


def test_an_address_inside_is_refused_unless_allowed(
    longwatch: Longwatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as receiver:
        monkeypatch.setenv("LONGWATCH_NOTIFY_URL", receiver.url)
        told = longwatch("notify-test")
    assert told.code == 1
    assert "refused: 127.0.0.1 is a loopback address" in told.out
    assert "LONGWATCH_NOTIFY_ALLOW" in told.out
    assert receiver.heard == []


def test_a_living_service_sends_with_its_own_settings(
    longwatch: Longwatch, home: Home, service: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGWATCH_NOTIFY_COMMAND", "/bin/false")
    service.told = (Told(target="webhook hooks.example", is_ok=True, said="HTTP 204"),)
    told = longwatch("notify-test")
    assert (told.code, told.out) == (0, "webhook hooks.example: delivered, HTTP 204\n")
    assert service.testers == ["operator (command line)"]
    service.told = ()
    told = longwatch("notify-test")
    assert told.code == 1
    assert "no target for notifications is set" in told.error
