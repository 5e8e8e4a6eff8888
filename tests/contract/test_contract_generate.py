"""The contract of a whole (not streamed) answer: counts, limits, stops, greedy continuation.

Continuation is the fact that resuming rests on: prompt + first k ids, with k fewer ids asked for,
gives the rest of the uninterrupted greedy answer.
"""

import httpx
import pytest

from tests.contract.exchange import generate

ANSWER_TOKENS = 48


def test_an_answer_counts_its_own_ids_and_those_of_the_prompt(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    answer = generate(client, prompt_ids, max_new_tokens=ANSWER_TOKENS)

    meta = answer["meta_info"]
    assert len(answer["output_ids"]) == meta["completion_tokens"] == ANSWER_TOKENS
    assert meta["prompt_tokens"] == len(prompt_ids)
    assert meta["finish_reason"] == {"type": "length", "length": ANSWER_TOKENS}
    assert isinstance(answer["text"], str)
    assert isinstance(meta["cached_tokens"], int)
    assert meta["e2e_latency"] > 0


def test_a_rid_that_was_sent_comes_back_as_the_id(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    body = {
        "input_ids": prompt_ids,
        "rid": "contract-echo-1",
        "sampling_params": {"temperature": 0, "max_new_tokens": 2},
    }

    answer = client.post("/generate", json=body).json()

    assert answer["meta_info"]["id"] == "contract-echo-1"


def test_without_max_new_tokens_the_answer_ends_at_128(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    answer = generate(client, prompt_ids)

    assert len(answer["output_ids"]) == 128
    assert answer["meta_info"]["finish_reason"] == {"type": "length", "length": 128}


def test_an_unknown_top_level_field_is_ignored(client: httpx.Client, prompt_ids: list[int]) -> None:
    body = {
        "input_ids": prompt_ids,
        "no_such_field": 1,
        "sampling_params": {"temperature": 0, "max_new_tokens": 3, "ignore_eos": True},
    }

    response = client.post("/generate", json=body)

    assert response.status_code == 200
    assert len(response.json()["output_ids"]) == 3


def test_a_matched_stop_id_ends_the_answer_and_stays_in_it(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    free = generate(client, prompt_ids, max_new_tokens=ANSWER_TOKENS)["output_ids"]
    stop_id = free[9]
    expected = free[: free.index(stop_id) + 1]

    answer = generate(
        client,
        prompt_ids,
        max_new_tokens=ANSWER_TOKENS,
        ignore_eos=False,
        stop_token_ids=[stop_id],
    )

    assert answer["output_ids"] == expected
    assert answer["meta_info"]["completion_tokens"] == len(expected)
    assert answer["meta_info"]["finish_reason"] == {"type": "stop", "matched": stop_id}


def test_ignore_eos_switches_stop_ids_off_too(client: httpx.Client, prompt_ids: list[int]) -> None:
    free = generate(client, prompt_ids, max_new_tokens=12)["output_ids"]

    answer = generate(client, prompt_ids, max_new_tokens=12, stop_token_ids=[free[4]])

    assert answer["output_ids"] == free
    assert answer["meta_info"]["finish_reason"]["type"] == "length"


def test_two_greedy_answers_to_one_prompt_are_equal(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    first = generate(client, prompt_ids, max_new_tokens=ANSWER_TOKENS)
    second = generate(client, prompt_ids, max_new_tokens=ANSWER_TOKENS)

    assert first["output_ids"] == second["output_ids"]
    assert first["meta_info"]["id"] != second["meta_info"]["id"]


def test_two_prompts_have_different_greedy_answers(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    first = generate(client, prompt_ids, max_new_tokens=ANSWER_TOKENS)
    other = generate(client, prompt_ids[::-1], max_new_tokens=ANSWER_TOKENS)

    assert first["output_ids"] != other["output_ids"]


@pytest.mark.parametrize("kept", [1, 2, 7, 24, ANSWER_TOKENS - 1])
def test_a_greedy_answer_goes_on_where_its_first_part_ended(
    client: httpx.Client, prompt_ids: list[int], kept: int
) -> None:
    whole = generate(client, prompt_ids, max_new_tokens=ANSWER_TOKENS)["output_ids"]

    rest = generate(client, prompt_ids + whole[:kept], max_new_tokens=ANSWER_TOKENS - kept)

    assert whole[:kept] + rest["output_ids"] == whole
    assert rest["meta_info"]["prompt_tokens"] == len(prompt_ids) + kept
