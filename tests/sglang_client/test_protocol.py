"""What is sent, and what of a server's facts is taken and stored."""

from array import array
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.types import ServerFacts
from app.errors import InputError
from app.sglang.protocol import (
    SAMPLING_SINCE,
    check_sampling,
    facts_from,
    generate_body,
    version_tuple,
    without_secrets,
)


def body(prompt: list[int], held: list[int], cap: int, **sampling: object) -> dict[str, Any]:
    made = generate_body(
        rid="lw-1",
        prompt=array("I", prompt),
        held=array("I", held),
        max_new_tokens=cap,
        sampling=sampling,
        stream_interval=64,
    )
    content: dict[str, Any] = orjson.loads(made)
    return content


IDS = st.lists(st.integers(0, 2**32 - 1), max_size=20)


@given(prompt=IDS, held=IDS, more=st.integers(1, 50), least=st.none() | st.integers(0, 60))
def test_a_continuation_asks_for_what_is_left_of_the_same_answer(
    prompt: list[int], held: list[int], more: int, least: int | None
) -> None:
    cap = len(held) + more

    sent = body(prompt, held, cap, min_new_tokens=least, temperature=0.5)

    parameters = sent["sampling_params"]
    assert sent["input_ids"] == prompt + held
    assert parameters["max_new_tokens"] == more
    assert parameters["temperature"] == 0.5
    assert least is None or parameters["min_new_tokens"] == max(0, least - len(held))


def test_every_request_streams_and_says_all_that_has_a_dangerous_default() -> None:
    sent = body([1, 2], [], 9)

    assert sent == {
        "rid": "lw-1",
        "input_ids": [1, 2],
        "sampling_params": {"max_new_tokens": 9, "stream_interval": 64},
        "stream": True,
    }


def test_sampling_cannot_overrule_the_limits_of_the_request() -> None:
    parameters = body([1], [], 9, max_new_tokens=1, stream_interval=1)["sampling_params"]

    assert parameters == {"max_new_tokens": 9, "stream_interval": 64}


@pytest.mark.parametrize("version", ["0.4.9.post6", "0.5.2", "0.5.23", None, "dev"])
def test_common_sampling_keys_are_known_to_every_version(version: str | None) -> None:
    check_sampling({"temperature": 1, "top_p": 1, "stop": [], "stop_token_ids": []}, version)


@pytest.mark.parametrize("key", ["foo", "n", "max_tokens", "Temperature", "custom_params"])
def test_an_unknown_key_is_named_with_the_known_ones(key: str) -> None:
    with pytest.raises(InputError, match=key) as error:
        check_sampling({"top_p": 1, key: 1}, "0.5.23")

    assert all(known in error.value.hint for known in SAMPLING_SINCE)


@pytest.mark.parametrize("key", ["sampling_seed", "stop_regex"])
@pytest.mark.parametrize(("version", "fits"), [("0.5.2", False), ("0.5.3", True), (None, True)])
def test_a_key_that_is_newer_than_the_server_is_refused_with_both_versions(
    key: str, version: str | None, fits: bool
) -> None:
    if fits:
        check_sampling({key: "x"}, version)
        return
    with pytest.raises(InputError, match=r"0\.5\.3.*0\.5\.2"):
        check_sampling({key: "x"}, version)


@pytest.mark.parametrize(
    ("version", "parts"),
    [
        ("0.5.4.post3", (0, 5, 4)),
        ("0.5.23", (0, 5, 23)),
        ("0.5.3rc0", (0, 5)),
        ("", ()),
        (None, ()),
    ],
)
def test_versions_are_compared_by_their_leading_numbers(
    version: str | None, parts: tuple[int, ...]
) -> None:
    assert version_tuple(version) == parts


# -- facts -----------------------------------------------------------------------------------

SECRETS = {
    "api_key": "s3cret",
    "admin_api_key": "s3cret",
    "ssl_keyfile_password": "s3cret",
    "launch_command": "python -m sglang --api-key s3cret",
    "watermark_secret_key": "s3cret",
    "API_KEY": "s3cret",
}


def test_secrets_do_not_stay() -> None:
    left = without_secrets({**SECRETS, "model_path": "m", "page_size": 1})

    assert left == {"model_path": "m", "page_size": 1}


def test_secrets_of_inner_objects_do_not_stay_either() -> None:
    left = without_secrets({"outer": {**SECRETS, "a": 1}, "many": [{**SECRETS, "b": 2}, 3]})

    assert left == {"outer": {"a": 1}, "many": [{"b": 2}, 3]}


def test_facts_hold_no_secret_wherever_it_stood() -> None:
    info = {**SECRETS, "internal_states": [SECRETS], "kv_events": SECRETS, "version": "0.5.23"}

    assert "s3cret" not in repr(facts_from(info, SECRETS, SECRETS))


def test_what_a_server_does_not_say_is_none() -> None:
    assert facts_from(None, None, None) == ServerFacts()
    assert facts_from({}, {}, {}) == ServerFacts()


def test_the_pools_of_all_ranks_are_summed() -> None:
    state = {"memory_usage": {"token_capacity": 1000}, "effective_max_running_requests_per_dp": 8}

    facts = facts_from({"max_total_num_tokens": 1000, "internal_states": [state, state]}, {}, {})

    assert (facts.kv_capacity_tokens, facts.max_running) == (2000, 16)


def test_an_old_server_has_its_figures_at_the_top_only() -> None:
    info = {"max_total_num_tokens": 1000, "max_running_requests": 8, "internal_states": [{}]}

    facts = facts_from(info, None, None)

    assert (facts.kv_capacity_tokens, facts.max_running) == (1000, 8)


def test_the_context_is_what_the_model_list_says_and_else_the_argument() -> None:
    info = {"context_length": 10}

    assert facts_from(info, {}, {"data": [{"max_model_len": 20}]}).context_tokens == 20
    assert facts_from(info, {}, {"data": []}).context_tokens == 10
    assert facts_from(info, {}, {"data": "odd"}).context_tokens == 10
    assert facts_from({"context_length": None}, {}, None).context_tokens is None


@pytest.mark.parametrize(
    ("info", "incremental"),
    [
        ({"incremental_streaming_output": True}, True),
        ({"stream_output": True}, True),
        ({"incremental_streaming_output": False, "stream_output": False}, False),
        ({}, False),
    ],
)
def test_the_streaming_mode_is_read_under_both_names(
    info: dict[str, object], incremental: bool
) -> None:
    assert facts_from(info, None, None).incremental is incremental


@pytest.mark.parametrize(
    ("info", "reserved"),
    [
        ({}, 0),
        ({"speculative_algorithm": None, "speculative_num_steps": 5}, 0),
        (
            {
                "speculative_algorithm": "EAGLE3",
                "speculative_num_steps": 3,
                "speculative_eagle_topk": 4,
                "speculative_num_draft_tokens": 16,
            },
            16,
        ),
        (
            {
                "speculative_algorithm": "EAGLE",
                "speculative_num_steps": 5,
                "speculative_eagle_topk": 8,
                "speculative_num_draft_tokens": None,
            },
            40,
        ),
    ],
)
def test_drafting_takes_slots_of_the_context(info: dict[str, object], reserved: int) -> None:
    assert facts_from(info, None, None).reserved_tokens == reserved


def test_settings_that_change_answers_are_kept_apart() -> None:
    info = {"dtype": "bfloat16", "quantization": None, "page_size": 1, "random_seed": 7}

    assert facts_from(info, None, None).answer_settings == {"dtype": "bfloat16"}


@pytest.mark.parametrize("odd", [1, [], {"a": 1}, True])
def test_odd_values_are_not_taken_for_facts(odd: object) -> None:
    facts = facts_from({"version": odd, "max_req_input_len": "x", "internal_states": odd}, {}, {})

    assert (facts.version, facts.max_prompt_tokens) == (None, None)
