"""Specs: what a good one gives, how it is stored, and who gets which limits."""

import pytest

from app.core.spec import (
    ClassSpec,
    LengthPolicy,
    Order,
    PartitionSpec,
    SpecError,
    from_json,
    parse_tokens,
    resolve_partitions,
    to_json,
)
from tests.core.specs import GOOD, parsed, problems_of


def test_a_good_spec_gives_everything_it_says() -> None:
    spec = parsed(GOOD)

    assert spec.name == "synth_100k"
    assert spec.server_urls == ("http://localhost:8000",)
    assert (spec.prompts_dir, spec.output_dir) == ("prepared", "out")
    assert spec.sampling == {"temperature": 1.0, "top_p": 0.95}
    assert spec.chat_template_kwargs == {"thinking": True}
    assert spec.samples_per_prompt == 2
    assert (spec.token_budget_tokens, spec.default_max_samples) == (80_000_000, 7000)
    assert spec.classes["short"] == ClassSpec(concurrency=150, max_new_tokens=10240)
    assert spec.partitions["B2_opencodeinstruct"] == PartitionSpec(
        class_name="long",
        token_budget_tokens=10_000_000,
        max_samples=70,
        concurrency=9,
        max_new_tokens=20_000,
        prompts="elsewhere.jsonl",
    )
    assert (spec.order, spec.max_attempts, spec.stream_interval) == (Order.TOGETHER, 3, 64)
    assert (spec.request_timeout_s, spec.stop_grace_s) == (None, 0)
    assert (spec.startup_wait_s, spec.stall_after_s) == (300, 600)
    assert (spec.length_policy, spec.strict_ids) == (LengthPolicy.CLAMP, False)


def test_settings_of_the_run_are_taken() -> None:
    spec = parsed(
        GOOD.replace(
            "[defaults]",
            'order = "sequence"\nmax_attempts = 5\nrequest_timeout_s = 90.5\nstop_grace_s = 10\n'
            "startup_wait_s = 1\nstall_after_s = 30\nstream_interval = 128\n"
            "vocabulary_size = 163840\nthink_open_ids = 163606\nthink_close_ids = [163607]\n"
            'max_template_error_share = 0.9\nstrict_ids = true\nlength_policy = "reject"\n'
            "detect_loops = false\n[defaults]",
        )
    )

    assert (spec.order, spec.max_attempts, spec.request_timeout_s) == (Order.SEQUENCE, 5, 90.5)
    assert (spec.stop_grace_s, spec.startup_wait_s, spec.stall_after_s) == (10, 1, 30)
    assert (spec.stream_interval, spec.vocabulary_size) == (128, 163840)
    assert (spec.think_open_ids, spec.think_close_ids) == ((163606,), (163607,))
    assert (spec.max_template_error_share, spec.strict_ids) == (0.9, True)
    assert (spec.length_policy, spec.detect_loops) == (LengthPolicy.REJECT, False)


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        ("10M", 10_000_000),
        ("2.5M", 2_500_000),
        ("800k", 800_000),
        ("800K", 800_000),
        ("1G", 1_000_000_000),
        (" 1_000 ", 1000),
        ("0.001k", 1),
        (12, 12),
    ],
)
def test_numbers_of_tokens(written: object, tokens: int) -> None:
    assert parse_tokens(written) == tokens


@pytest.mark.parametrize(
    "written", ["", "M", "10 million", "-5", "1.5", "0", 0, "10MB", "1e6", "1,000", 1.5, True, None]
)
def test_what_is_no_number_of_tokens_is_explained(written: object) -> None:
    with pytest.raises(ValueError, match=r'write a whole number, or one with k, M or G: .*"2\.5M"'):
        parse_tokens(written)


def test_a_stored_spec_comes_back_as_it_was() -> None:
    spec = parsed(GOOD.replace("[defaults]", "think_open_ids = [1, 2]\n[defaults]"))

    assert from_json(to_json(spec)) == spec


def test_a_stored_spec_of_a_later_version_can_be_read() -> None:
    spec = parsed(GOOD)

    assert from_json(to_json(spec).replace('{"name"', '{"from_the_future": 1, "name"')) == spec


def test_limits_are_filled_in_from_class_and_defaults() -> None:
    resolved = resolve_partitions(parsed(GOOD), [])

    assert list(resolved) == ["B1_glaive", "B2_opencodeinstruct"]
    short, long = resolved.values()
    assert (short.max_new_tokens, short.max_samples, short.token_budget_tokens) == (
        10240,
        7000,
        None,
    )
    assert (long.max_new_tokens, long.max_samples, long.token_budget_tokens) == (
        20_000,
        70,
        10_000_000,
    )
    assert (short.concurrency, long.concurrency) == (None, 9)


def test_without_partitions_all_that_are_found_run() -> None:
    spec = parsed(GOOD[: GOOD.index("[partition")])

    resolved = resolve_partitions(spec, ["B1_glaive", "B2_x", "B6_y"])

    assert {name: one.class_name for name, one in resolved.items()} == {
        "B1_glaive": "short",
        "B2_x": "long",
        "B6_y": "short",
    }


def test_the_only_class_is_everybody_s() -> None:
    text = GOOD[: GOOD.index("[class")] + "[class.any]\nconcurrency = 2\nmax_new_tokens = 3\n"

    named = parsed(text + "[partition.p]\n")
    found = resolve_partitions(parsed(text), ["q"])

    assert named.partitions["p"].class_name == "any"
    assert found["q"].class_name == "any"


def test_a_class_that_cannot_be_told_is_asked_for() -> None:
    text = GOOD[: GOOD.index("[partition")].replace("class.short", "class.quick")

    assert problems_of(text + "[partition.p]\n") == (
        "[partition.p].class is missing; choose one of quick, long",
    )
    with pytest.raises(SpecError, match=r"partition q has no class; add \[partition\.q\]"):
        resolve_partitions(parsed(text), ["q"])


def test_a_deadline_is_kept_as_it_was_written() -> None:
    spec = parsed(
        GOOD.replace("[run]", '[run]\ndeadline = "08:00"').replace(
            "[partition.B2_opencodeinstruct]",
            "[partition.B2_opencodeinstruct]\ndeadline = 2026-12-01T08:00:00+01:00",
        )
    )

    assert spec.deadline == "08:00"
    assert spec.partitions["B2_opencodeinstruct"].deadline == "2026-12-01T08:00:00+01:00"
    assert from_json(to_json(spec)) == spec


@pytest.mark.parametrize("written", ['"tomorrow"', "8", "2026-12-01", '"+6"', "true"])
def test_a_deadline_that_is_no_moment_is_told_with_its_place(written: str) -> None:
    (problem,) = problems_of(GOOD.replace("[run]", f"[run]\ndeadline = {written}"))

    assert problem.startswith("[run].deadline: ")
    assert 'write a time of day ("08:00")' in problem or "is not a span" in problem
