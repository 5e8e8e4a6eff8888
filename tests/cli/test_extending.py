"""`longwatch extend`: straight to the ledger, or to the service that lives on the home."""

import threading

import pytest

from tests.api.conftest import Door
from tests.api.cut_short import cut_short
from tests.api.home import Home
from tests.cli.conftest import Longwatch


def test_extend_without_a_service_says_when_it_takes_effect(
    longwatch: Longwatch, home: Home
) -> None:
    cut_short(home, n=3)
    told = longwatch("extend", "night", "B1_chat", "--max-new-tokens", "200")
    assert (told.code, told.error) == (0, "")
    assert "B1_chat: max_new_tokens 100 -> 200; B1_chat: extend 3 truncated" in told.out
    assert "takes effect when the run next starts" in told.out
    assert home.partition("B1_chat").counts.truncated == 0


def test_the_run_is_left_out_and_a_reason_is_given(longwatch: Longwatch, home: Home) -> None:
    cut_short(home, n=3)
    told = longwatch("extend", "B1_chat", "--max-new-tokens", "200", "--reason", "clipped")
    assert told.code == 1
    assert "None has any; leave --reason out to take all" in told.error
    assert home.partition("B1_chat").max_new_tokens == 100
    assert home.partition("B1_chat").counts.truncated == 3


def test_extend_goes_to_the_service_that_lives(
    longwatch: Longwatch, home: Home, service: Door
) -> None:
    cut_short(home, n=2)
    told: list[object] = []

    def ask() -> None:
        told.append(longwatch("extend", "night", "B1_chat", "--max-new-tokens", "200"))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(30)
    assert service.n_pokes == 1
    assert home.partition("B1_chat").max_new_tokens == 200
    assert "2 pending again" in told[0].out  # type: ignore[attr-defined]  # Told
    assert "No service runs" not in told[0].out  # type: ignore[attr-defined]  # Told


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("night", "B1_chat", "--max-new-tokens", "50"), "is below the 100 that B1_chat has"),
        (("night", "B9", "--max-new-tokens", "200"), "has no partition B9"),
        (("night", "--max-new-tokens", "200"), "extend needs one partition"),
        (("night", "B1_chat", "B2_code", "--max-new-tokens", "200"), "needs one partition"),
        (("night", "B1_chat"), "--max-new-tokens"),
        (("night", "B1_chat", "--max-new-tokens", "many"), 'max_new_tokens "many" is not a'),
        (("night", "B1_chat", "--max-new-tokens", "0"), 'max_new_tokens "0" is not a'),
        (("night", "B1_chat", "--max-new-tokens", "9" * 5000), "is not a whole number from 1"),
        (("nobody", "B1_chat", "--max-new-tokens", "200"), 'no run "nobody"'),
    ],
)
def test_wrong_words_are_told(
    longwatch: Longwatch, home: Home, words: tuple[str, ...], shown: str
) -> None:
    cut_short(home, n=2)
    before = home.partition("B1_chat")
    told = longwatch("extend", *words)
    assert told.code == 1
    assert told.error.startswith("error: ")
    assert shown in told.error
    assert home.partition("B1_chat") == before
