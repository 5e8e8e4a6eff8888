"""The contract's questions: health, model, limits, load, tokenizer, metrics, unknown paths.

Owns nothing that generates, except where a counter must be seen to count.
"""

import httpx
import pytest

from tests.contract.exchange import Engine, generate, metric_sum, wait_until

MODEL_KEYS = {
    "model_path",
    "served_model_name",
    "tokenizer_path",
    "is_generation",
    "preferred_sampling_params",
    "weight_version",
    "model_type",
    "architectures",
}
LOAD_KEYS = {
    "dp_rank",
    "num_running_reqs",
    "num_waiting_reqs",
    "num_used_tokens",
    "max_total_num_tokens",
    "max_running_requests",
    "token_usage",
    "gen_throughput",
    "cache_hit_rate",
}


def test_health_answers_200_with_no_body(client: httpx.Client) -> None:
    response = client.get("/health")

    assert response.status_code == 200
    assert response.content == b""


@pytest.mark.parametrize("path", ["/model_info", "/get_model_info"])
def test_model_info_names_the_model_under_both_paths(client: httpx.Client, path: str) -> None:
    answer = client.get(path).json()

    assert answer.keys() >= MODEL_KEYS
    assert answer["is_generation"] is True


def test_server_info_states_capacity_version_and_streaming_mode(client: httpx.Client) -> None:
    answer = client.get("/server_info").json()

    assert answer["max_total_num_tokens"] > 0
    assert answer["max_req_input_len"] > 0
    assert answer["version"].split(".")[0].isdigit()
    assert isinstance(answer["incremental_streaming_output"], bool)
    assert isinstance(answer["skip_tokenizer_init"], bool)


def test_server_info_states_the_running_limit_of_every_rank(client: httpx.Client) -> None:
    states = client.get("/server_info").json()["internal_states"]

    assert states
    for state in states:
        assert state["effective_max_running_requests_per_dp"] > 0
        assert state["memory_usage"]["token_capacity"] > 0


def test_the_prompt_limit_lies_under_the_context(client: httpx.Client, engine: Engine) -> None:
    facts = client.get("/server_info").json()

    assert facts["max_req_input_len"] < engine.context_tokens


def test_models_list_carries_the_context_length(client: httpx.Client) -> None:
    answer = client.get("/v1/models").json()

    assert answer["object"] == "list"
    assert answer["data"][0]["id"]
    assert answer["data"][0]["max_model_len"] > 0


def test_loads_give_one_entry_for_each_rank(client: httpx.Client) -> None:
    ranks = len(client.get("/server_info").json()["internal_states"])

    answer = client.get("/v1/loads").json()

    assert answer.keys() >= {"timestamp", "version", "loads"}
    assert [load["dp_rank"] for load in answer["loads"]] == list(range(ranks))
    assert all(load.keys() >= LOAD_KEYS for load in answer["loads"])


def test_tokenize_counts_the_ids_of_a_prompt(client: httpx.Client) -> None:
    answer = client.post("/tokenize", json={"prompt": "Hello fox"}).json()

    assert answer["count"] == len(answer["tokens"]) > 0
    assert all(isinstance(token, int) and token >= 0 for token in answer["tokens"])


def test_tokenize_puts_messages_through_the_chat_template(client: httpx.Client) -> None:
    plain = client.post("/tokenize", json={"prompt": "Hello fox"}).json()
    messages = [{"role": "user", "content": "Hello fox"}]

    chat = client.post("/tokenize", json={"messages": messages}).json()

    assert chat["count"] == len(chat["tokens"]) > plain["count"]


def test_tokenize_refuses_a_body_with_neither_prompt_nor_messages(client: httpx.Client) -> None:
    response = client.post("/tokenize", json={})

    assert response.status_code == 400
    assert response.json()["object"] == "error"


@pytest.mark.parametrize(
    "text", ["Hello fox", "h\u00e9llo \u6f22\u5b57", "a\n\tb  c", "\U0001f98a!"]
)
def test_detokenize_gives_back_the_text_that_was_tokenized(client: httpx.Client, text: str) -> None:
    tokens = client.post("/tokenize", json={"prompt": text}).json()["tokens"]

    answer = client.post("/detokenize", json={"tokens": tokens})

    assert answer.json()["text"] == text


def test_metrics_count_generated_tokens_once_the_request_has_ended(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    generate(client, prompt_ids, max_new_tokens=1)
    name = "sglang:generation_tokens_total"
    before = metric_sum(client, name)

    generate(client, prompt_ids, max_new_tokens=24)

    wait_until(lambda: metric_sum(client, name) >= before + 24, f"{name} grew by 24", bound_s=20)


def test_metrics_name_the_running_and_the_waiting_requests(client: httpx.Client) -> None:
    text = client.get("/metrics").text

    assert "\nsglang:num_running_reqs{" in text
    assert "\nsglang:num_queue_reqs{" in text


def test_an_unknown_path_is_404_with_a_detail(client: httpx.Client) -> None:
    response = client.get("/no-such-path")

    assert response.status_code == 404
    assert response.json() == {"detail": "Not Found"}


def test_generate_by_get_is_405_with_a_detail(client: httpx.Client) -> None:
    response = client.get("/generate")

    assert response.status_code == 405
    assert response.json() == {"detail": "Method Not Allowed"}
