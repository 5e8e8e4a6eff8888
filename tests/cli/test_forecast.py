"""`longwatch forecast`: what training data takes, of a number of tokens and of a run."""

import json
from pathlib import Path

import pytest

from app.core.training_bytes import HiddenStates
from app.files.space import free_bytes
from app.sizing import longest_that_fits, sizes
from tests.api.home import Home
from tests.cli.conftest import Longwatch

PROMPT_TOKENS = 4


def test_the_story_without_a_run(longwatch: Longwatch) -> None:
    told = longwatch("forecast", "--tokens", "251M")

    assert (told.code, told.error) == (0, "")
    assert "251M tokens" in told.out
    assert "1.7 GB JSONL, 296.2 MB Parquet, 4.0 GB Arrow" in told.out
    assert "14.4 TB, 57,360 bytes a token" in told.out
    assert "free" not in told.out  # no disk was named


def test_a_run_is_its_samples_times_the_lengths_of_its_answers(
    longwatch: Longwatch, home: Home
) -> None:
    first, second = home.names
    home.keep(first, 3, tokens=50)

    told = json.loads(longwatch("forecast", "--json").out)

    n_samples = home.n_samples
    assert told["partitions"] == [
        {
            "name": first,
            "samples": n_samples,
            "measured_answers": 3,
            "tokens": n_samples * (50 + PROMPT_TOKENS),
        },
        {"name": second, "samples": n_samples, "measured_answers": 0, "tokens": None},
    ]
    assert told["is_lower_bound"]
    assert told["tokens"] == n_samples * (50 + PROMPT_TOKENS)
    assert told["hidden_states_bytes"] == told["tokens"] * 57_360
    assert told["free_bytes"] == pytest.approx(free_bytes(home.output_dir, 5.0), rel=0.2)
    assert "at least" in longwatch("forecast").out
    assert "no answer has been measured yet" in longwatch("forecast").out


def test_a_cut_and_the_one_that_would_fit(home: Home, longwatch: Longwatch) -> None:
    for name in home.names:
        home.keep(name, 3, tokens=1_000)
    parts, states = sizes(home.ledger, home.run_id), HiddenStates(hidden_size=10)
    whole = states.bytes_of(sum(each.n_tokens() or 0 for each in parts))

    assert longest_that_fits(parts, states, whole) is None
    longest = longest_that_fits(parts, states, whole // 2)
    assert longest is not None
    cut, more = (
        states.bytes_of(sum(each.n_tokens(most) or 0 for each in parts))
        for most in (longest, longest + 64)
    )
    assert cut <= whole // 2 < more
    told = json.loads(longwatch("forecast", "--json", "--max-length", "64").out)
    assert told["tokens"] == 64 * 2 * home.n_samples


def test_the_hidden_size_is_read_from_a_models_config(longwatch: Longwatch, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"text_config": {"hidden_size": 4096}}')
    words = ("forecast", "--tokens", "1M", "--json", "--config", str(config))

    assert json.loads(longwatch(*words).out)["bytes_per_token"] == 4 * 4096 * 2 + 16
    assert json.loads(longwatch(*words, "--dtype", "fp8").out)["bytes_per_token"] == 4 * 4096 + 16


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tokens", "many"), '--tokens: "many" is not a number of tokens'),
        (("--tokens", "1M", "--dtype", "int4"), '--dtype "int4" is not known'),
        (("--tokens", "1M", "--config", "no-such.json"), "no-such.json is no model config"),
    ],
)
def test_wrong_words_are_told(longwatch: Longwatch, words: tuple[str, ...], said: str) -> None:
    told = longwatch("forecast", *words)
    assert told.code == 1
    assert said in told.error
