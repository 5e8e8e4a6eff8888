"""What makes answers differ in kind, and what may change freely."""

from dataclasses import replace

import pytest

from app.core.fingerprint import differences, fingerprint, gen_id, gen_parts
from app.core.spec import ClassSpec, PartitionSpec, RunSpec
from app.core.types import ServerFacts

SPEC = RunSpec(
    name="r",
    server_urls=("http://a:1",),
    prompts_dir="in",
    output_dir="out",
    classes={"long": ClassSpec(concurrency=32, max_new_tokens=16384)},
    partitions={"B2": PartitionSpec(class_name="long")},
    sampling={"temperature": 0.7},
    chat_template_kwargs={"thinking": True},
)
FACTS = ServerFacts(
    model_path="/m", tokenizer_path="/m", weight_version="w1", answer_settings={"dtype": "bf16"}
)
INPUTS = {"B2": [120, "abc"]}
BEFORE = fingerprint(SPEC, FACTS, INPUTS)


def changed(spec: RunSpec = SPEC, facts: ServerFacts = FACTS) -> list[str]:
    return differences(BEFORE, fingerprint(spec, facts, INPUTS))


def test_res_03_changed_settings_are_listed_old_and_new() -> None:
    other = replace(
        SPEC,
        sampling={"temperature": 1.0, "top_p": 0.9},
        classes={"long": ClassSpec(concurrency=32, max_new_tokens=64)},
    )

    assert changed(other) == [
        "temperature 0.7 -> 1.0",
        "max_new_tokens of B2 16,384 -> 64",
        "top_p not set -> 0.9",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        replace(SPEC, classes={"long": ClassSpec(concurrency=4, max_new_tokens=16384)}),
        replace(SPEC, server_urls=("http://b:2",), name="other"),
        replace(SPEC, request_timeout_s=5, stop_grace_s=9, stall_after_s=1, max_attempts=9),
        replace(SPEC, token_budget_tokens=5, default_token_budget_tokens=6, default_max_samples=7),
        replace(SPEC, stream_interval=256),
    ],
)
def test_res_03_concurrency_budgets_and_timeouts_change_freely(spec: RunSpec) -> None:
    assert changed(spec) == []
    assert gen_id(gen_parts(spec, FACTS)) == gen_id(gen_parts(SPEC, FACTS))


@pytest.mark.parametrize(
    ("facts", "difference"),
    [
        (replace(FACTS, model_path="/n"), "model /m -> /n"),
        (replace(FACTS, weight_version="w2"), "weights w1 -> w2"),
        (replace(FACTS, tokenizer_path="/t"), "tokenizer /m -> /t"),
    ],
)
def test_another_model_is_a_difference(facts: ServerFacts, difference: str) -> None:
    assert changed(facts=facts) == [difference]


def test_what_a_server_does_not_say_is_no_difference() -> None:
    assert changed(facts=replace(FACTS, weight_version=None)) == []


def test_template_samples_and_inputs_are_differences() -> None:
    other = replace(SPEC, chat_template_kwargs={"thinking": False}, samples_per_prompt=4)

    found = differences(BEFORE, fingerprint(other, FACTS, {"B2": [121, "abd"]}))

    assert found == [
        "samples_per_prompt 1 -> 4",
        "chat_template_kwargs.thinking true -> false",
        "prompts of B2 changed",
    ]


def test_a_partition_more_or_less_is_no_difference() -> None:
    more = replace(SPEC, partitions={**SPEC.partitions, "B3": PartitionSpec(class_name="long")})
    after = fingerprint(more, FACTS, {**INPUTS, "B3": [1, "x"]})

    assert differences(BEFORE, after) == []
    assert differences(after, BEFORE) == []


def test_a_stored_fingerprint_equals_a_fresh_one() -> None:
    spec = replace(SPEC, sampling={"stop": ["a", "b"], "logit_bias": {"5": 1.0}})
    stored = fingerprint(spec, FACTS, {"B2": ("tuple", 1)})

    assert differences(stored, fingerprint(spec, FACTS, {"B2": ["tuple", 1]})) == []


def test_the_gen_id_is_twelve_digits_of_what_decides_an_answer() -> None:
    name = gen_id(gen_parts(SPEC, FACTS))

    assert len(name) == 12
    assert int(name, 16) >= 0
    parts = gen_parts(SPEC, FACTS)
    assert gen_id(dict(reversed(parts.items()))) == name


@pytest.mark.parametrize(
    ("spec", "facts"),
    [
        (replace(SPEC, sampling={"temperature": 0.8}), FACTS),
        (replace(SPEC, chat_template_kwargs={}), FACTS),
        (SPEC, replace(FACTS, model_path="/n")),
        (SPEC, replace(FACTS, weight_version="w2")),
        (SPEC, replace(FACTS, tokenizer_path="/t")),
        (SPEC, replace(FACTS, answer_settings={"dtype": "fp8"})),
    ],
)
def test_another_way_of_answering_has_another_gen_id(spec: RunSpec, facts: ServerFacts) -> None:
    assert gen_id(gen_parts(spec, facts)) != gen_id(gen_parts(SPEC, FACTS))


def test_a_longer_limit_keeps_the_gen_id() -> None:
    longer = replace(SPEC, classes={"long": ClassSpec(concurrency=32, max_new_tokens=99_999)})

    assert gen_id(gen_parts(longer, FACTS)) == gen_id(gen_parts(SPEC, FACTS))
