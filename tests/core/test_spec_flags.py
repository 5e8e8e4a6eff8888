"""The flag form of a run, and what sampling parameters may be."""

from dataclasses import replace

import pytest

from app.core.spec import SpecError, from_json, resolve_partitions, to_json
from app.core.spec_flags import RunFlags, spec_from_flags
from app.core.spec_sampling import sampling_problems


def test_the_flags_of_the_old_job_give_the_same_run() -> None:
    spec = spec_from_flags(
        RunFlags(
            partitions=["all"],
            output_dir="/data/prepared",
            server_urls=["http://localhost:8000"],
            short_concurrency=150,
            short_max_tokens=10240,
            long_concurrency=32,
            long_max_tokens=16384,
            max_samples=7000,
            token_budget="10M",  # noqa: S106 - no password
            short=["B9_new"],
        )
    )

    assert (spec.name, spec.prompts_dir) == ("prepared", "/data/prepared")
    assert spec.partitions == {}
    resolved = resolve_partitions(spec, ["B1_a", "B2_b", "B9_new"])
    assert [one.class_name for one in resolved.values()] == ["short", "long", "short"]
    assert [one.max_new_tokens for one in resolved.values()] == [10240, 16384, 10240]
    assert {one.max_samples for one in resolved.values()} == {7000}
    assert {one.token_budget_tokens for one in resolved.values()} == {10_000_000}
    assert from_json(to_json(spec)) == spec


def test_named_partitions_of_the_flags_are_kept_in_order_each_once() -> None:
    spec = spec_from_flags(
        RunFlags(
            partitions=["B7_x,B2_y", "B7_x"],
            output_dir="out",
            prompts_dir="in",
            server_urls=["http://a:1"],
            name="mine",
        )
    )

    assert list(spec.partitions) == ["B7_x", "B2_y"]
    assert [one.class_name for one in spec.partitions.values()] == ["short", "long"]
    assert (spec.name, spec.prompts_dir, spec.output_dir) == ("mine", "in", "out")


def test_all_wrong_flags_are_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        spec_from_flags(
            RunFlags(
                partitions=["a b"],
                output_dir="",
                server_urls=["a:1"],
                short_concurrency=0,
                max_samples=0,
                token_budget="much",  # noqa: S106 - no password
                sampling={"temperature": -1},
            )
        )

    assert [
        problem.split(":")[0].removesuffix(" is empty; name the folder for the answers")
        for problem in caught.value.problems
    ] == [
        "--server-url",
        "--short-concurrency",
        "--max-samples",
        "sampling temperature",
        "--token-budget",
        "--partition",
        "--output-dir",
    ]


@pytest.mark.parametrize(
    "sampling",
    [
        {"top_k": -1},
        {"top_k": 20, "min_p": 0, "repetition_penalty": 1.1},
        {"stop": "END", "stop_token_ids": [1], "ignore_eos": False},
        {"stop": ["a"] * 32, "logit_bias": {"5": -1.5}, "sampling_seed": -3},
    ],
)
def test_what_a_server_takes_passes(sampling: dict[str, object]) -> None:
    assert sampling_problems(sampling) == []


@pytest.mark.parametrize(
    "sampling",
    [
        {"top_k": 0},
        {"top_k": 1.5},
        {"temperature": "hot"},
        {"temperature": True},
        {"repetition_penalty": 0},
        {"stop": ["a"] * 33},
        {"stop": [""]},
        {"stop_token_ids": 5},
        {"stop_token_ids": [-1]},
        {"logit_bias": {"a": 1}},
        {"seed": 5},
        {"regex": "a", "ebnf": "b"},
    ],
)
def test_what_a_server_refuses_does_not_pass(sampling: dict[str, object]) -> None:
    assert len(sampling_problems(sampling)) == 1


def test_the_flag_of_a_deadline_is_kept_as_it_was_typed_and_checked() -> None:
    flags = RunFlags(output_dir="out", server_urls=["http://a:1"], deadline="08:00")

    assert spec_from_flags(flags).deadline == "08:00"
    with pytest.raises(SpecError, match='--deadline: "8" is not a moment'):
        spec_from_flags(replace(flags, deadline="8"))
