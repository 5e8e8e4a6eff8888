"""The thresholds of a run: read, bounded, stored and read again."""

import json
from dataclasses import fields, replace

import pytest

from app.api.spec_body import spec_of
from app.core.spec import SpecError, from_json, to_json
from app.core.spec_parse import parse_spec
from app.core.thresholds import RunThresholds
from app.errors import InputError

SPEC = """
[run]
name = "n"
server_urls = ["http://localhost:30000"]
prompts_dir = "p"
output_dir = "o"
{}
[class.long]
concurrency = 4
max_new_tokens = 100
"""


def thresholds(lines: str) -> RunThresholds:
    return parse_spec(SPEC.format(lines), "spec").thresholds


def test_srv_03_and_11_set_their_own() -> None:
    asked = "slow_ratio = 0.3\nslow_after_s = 30\nempty_share_pause = 0.4\nempty_window = 10"

    found = thresholds(f"{asked}\nauto_pause = false")

    assert found == RunThresholds(
        slow_ratio=0.3, slow_after_s=30, empty_share_pause=0.4, empty_window=10, auto_pause=False
    )
    assert thresholds("") == RunThresholds()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("slow_ratio = 1", "[run].slow_ratio: 1 is not a number from 0.01 to 0.99"),
        ("failing_share = 0", "[run].failing_share: 0 is not a number from 0.001 to 1"),
        ("empty_window = 2", "[run].empty_window: 2 is not a whole number from 5 to 100,000"),
        ("auto_pause = 1", "[run].auto_pause: 1 is neither true nor false"),
    ],
)
def test_a_bad_one_is_named_with_its_bounds(line: str, problem: str) -> None:
    with pytest.raises(SpecError) as caught:
        thresholds(line)

    assert caught.value.problems == (problem,)


def test_in_another_table_it_is_told_where_it_belongs() -> None:
    with pytest.raises(SpecError, match=r"failing_share belongs in \[run\]"):
        parse_spec(SPEC.format("") + "failing_share = 0.2\n", "spec")


def test_stored_ones_come_back_and_those_of_before_get_the_defaults() -> None:
    spec = parse_spec(SPEC.format("failing_window = 50"), "spec")

    assert from_json(to_json(spec)) == spec
    old = {key: one for key, one in json.loads(to_json(spec)).items() if key != "thresholds"}
    assert from_json(json.dumps(old)).thresholds == RunThresholds()
    newer = json.loads(to_json(spec))
    newer["thresholds"]["not_known_yet"] = 3
    assert from_json(json.dumps(newer)) == spec


def test_what_comes_as_json_is_bounded_too() -> None:
    spec = parse_spec(SPEC.format(""), "spec")
    bad = replace(spec, thresholds=replace(spec.thresholds, empty_share_pause=7.0))

    with pytest.raises(InputError, match=r"empty_share_pause is 7, not a number from 0.001 to 1"):
        spec_of(json.loads(to_json(bad)))
    assert spec_of(json.loads(to_json(spec))) == spec


def test_each_says_what_it_is() -> None:
    assert all(one.metadata["about"] for one in fields(RunThresholds))
