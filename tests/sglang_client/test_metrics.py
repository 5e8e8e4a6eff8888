"""The texts of /metrics and the bodies of /v1/loads, across versions, ranks and tenants."""

from math import inf
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.loads import LoadSource
from app.errors import ServerError
from app.sglang.loads import read_loads
from app.sglang.metrics import read_metrics
from app.sglang.reading import Counter, Reading

RECORDINGS = Path(__file__).parent / "recordings"


def read(text: str) -> Reading:
    reading = read_metrics(text)
    assert reading is not None
    return reading


def recorded(name: str) -> Reading:
    return read((RECORDINGS / name).read_text())


def test_the_real_0_5_23_after_a_retraction() -> None:
    reading = recorded("metrics_0.5.23_retracted.txt")

    assert reading.n_ranks == 1
    assert reading.kv_capacity_tokens == 400
    assert reading.kv_used_tokens == 0
    assert reading.kv_reclaimable_tokens == 328
    assert reading.kv_free_tokens == 72
    assert (reading.running_requests, reading.waiting_requests) == (0, 0)
    assert reading.counters[Counter.DECODED] == 719
    assert reading.counters[Counter.COMPUTED] == 436
    assert reading.counters[Counter.CACHED] == 0  # its mode has no series yet
    assert reading.counters[Counter.RETRACTED] == 2
    assert reading.counters[Counter.ENDED] == 7  # streamed and not
    assert reading.first_tokens[inf] == 7


def test_the_real_0_5_23_before_any_retraction_knows_that_there_was_none() -> None:
    reading = recorded("metrics_0.5.23.txt")

    assert reading.counters[Counter.RETRACTED] == 0
    assert reading.counters[Counter.HIT] == 156
    assert reading.counters[Counter.MISSED] == 266
    assert reading.counters[Counter.CACHED_ENDED] == 156
    assert reading.first_tokens[0.1] == 24
    assert len(reading.first_tokens) == 19


def test_the_real_0_5_9_tells_its_use_and_no_split_of_its_pool() -> None:
    reading = recorded("metrics_0.5.9.txt")

    assert reading.running_requests == 1
    assert reading.kv_capacity_tokens == 20_000
    assert reading.kv_used_tokens == 1679
    assert reading.used_ratio == pytest.approx(0.08395)
    assert reading.kv_reclaimable_tokens is None
    assert reading.kv_free_tokens is None
    assert reading.throughput_tokens_per_s == pytest.approx(179.18, abs=0.01)
    assert reading.counters[Counter.DECODED] == 3468
    assert Counter.HIT not in reading.counters


def test_srv_21_ranks_that_repeat_a_figure_are_taken_once() -> None:
    text = "".join(f'sglang:num_running_reqs{{tp_rank="{n}"}} 4\n' for n in range(3))

    reading = read(text)

    assert reading.running_requests == 4
    assert reading.waiting_requests is None
    assert reading.kv_capacity_tokens is None
    assert reading.used_ratio is None
    assert reading.throughput_tokens_per_s is None
    assert reading.counters == {}


def test_data_parallel_ranks_are_added_up_and_their_use_is_the_fullest() -> None:
    lines = []
    for dp_rank, tp_ranks in enumerate(((0, 1), (2, 3))):
        for tp_rank in tp_ranks:
            labels = f'{{dp_rank="{dp_rank}",tp_rank="{tp_rank}",moe_ep_rank="{tp_rank}"}}'
            lines += [
                f"sglang:num_running_reqs{labels} {5 + dp_rank}",
                f"sglang:max_total_num_tokens{labels} 1000",
                f"sglang:token_usage{labels} 0.{dp_rank + 3}",
                f"sglang:gen_throughput{labels} 100",
                f"sglang:num_retracted_requests_total{labels} 7",
            ]
    reading = read("\n".join(lines))

    assert reading.n_ranks == 2
    assert reading.running_requests == 11
    assert reading.kv_capacity_tokens == 2000
    assert reading.used_ratio == pytest.approx(0.4)
    assert reading.throughput_tokens_per_s == 200
    assert reading.counters[Counter.RETRACTED] == 14


def test_the_first_tensor_rank_is_believed_where_it_tells() -> None:
    labels = ('{pp_rank="0",tp_rank="0"} 3', '{pp_rank="0",tp_rank="1"} 9')

    assert read("".join(f"sglang:num_queue_reqs{one}\n" for one in labels)).waiting_requests == 3


def test_the_series_of_all_priorities_is_not_added_to_its_parts() -> None:
    text = "".join(
        f'sglang:num_running_reqs{{priority="{priority}",tp_rank="0"}} {n}\n'
        for priority, n in (("", 12), ("1", 4), ("5", 8))
    )

    assert read(text).running_requests == 12
    assert read(text.replace('priority=""', 'priority="9"')).running_requests == 24


def test_other_tenants_streams_and_processes() -> None:
    text = (
        'sglang:generation_tokens_total{is_streaming="true",model_name="a"} 10\n'
        'sglang:generation_tokens_total{is_streaming="false",model_name="a"} 5\n'
        'sglang:generation_tokens_total{is_streaming="true",model_name="b"} 100\n'
        'sglang:num_running_reqs{model_name="a",pid="1",tp_rank="0"} 2\n'
        'sglang:num_running_reqs{model_name="a",pid="2",tp_rank="0"} 1\n'
    )
    reading = read(text)

    assert reading.counters[Counter.GENERATED_ENDED] == 115
    assert reading.running_requests == 2


def test_the_capacity_of_0_5_9_stands_in_labels_where_no_gauge_tells_it() -> None:
    text = 'sglang:cache_config_info{num_pages="250",page_size="16"} 1.0\n'

    assert read(text).kv_capacity_tokens == 4000


def test_cached_tokens_that_tell_a_total_are_not_added_to_it() -> None:
    text = "".join(
        f'sglang:cached_tokens_total{{cache_source="{source}"}} {n}\n'
        for source, n in (("device", 30), ("host", 10), ("total", 40))
    )

    assert read(text).counters[Counter.CACHED_ENDED] == 40
    assert read(text.replace('"total"', '"storage"')).counters[Counter.CACHED_ENDED] == 80


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "<html><body>Not here</body></html>",
        "# HELP sglang:num_running_reqs The number of running requests.\n",
        "vllm:num_requests_running 4\n",
        "sglang:num_running_reqs NaN\n",
    ],
)
def test_srv_21_a_text_without_any_series_of_load_is_none_at_all(text: str) -> None:
    assert read_metrics(text) is None


def test_a_line_that_cannot_be_read_is_an_error_in_words() -> None:
    with pytest.raises(ServerError, match="/metrics cannot be read"):
        read_metrics('sglang:num_running_reqs{tp_rank="0"} four\n')


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_no_text_at_all_ends_in_anything_but_a_reading_or_our_error(tail: str) -> None:
    for start in ("sglang:num_running_reqs", 'sglang:num_running_reqs{tp_rank="0'):
        try:
            read_metrics(start + tail)
        except ServerError:
            continue


# ---- /v1/loads ----


def loads(*ranks: dict[str, object], **envelope: object) -> Reading | None:
    return read_loads(orjson.dumps({"loads": list(ranks), **envelope}))


RANK: dict[str, object] = {
    "num_running_reqs": 2,
    "num_waiting_reqs": 3,
    "num_used_tokens": 116,
    "max_total_num_tokens": 20_000,
    "max_running_requests": 2,
    "token_usage": 0.0058,
    "gen_throughput": 6.79,
    "total_prefill_uncached_tokens": 52,
}


def test_loads_of_two_ranks_are_added_up() -> None:
    reading = loads(RANK, {**RANK, "token_usage": 0.5}, version="0.5.23")

    assert reading is not None
    assert reading.source is LoadSource.LOADS
    assert (reading.n_ranks, reading.version) == (2, "0.5.23")
    assert (reading.running_requests, reading.waiting_requests) == (4, 6)
    assert (reading.kv_used_tokens, reading.kv_capacity_tokens) == (232, 40_000)
    assert reading.max_running_requests == 4
    assert reading.used_ratio == 0.5
    assert reading.throughput_tokens_per_s == pytest.approx(13.58)
    assert reading.kv_free_tokens is None
    assert reading.counters == {Counter.LOADS_PREFILL: 104}


def test_the_mean_in_the_old_envelope_is_not_taken_for_a_total() -> None:
    reading = loads(RANK, RANK, aggregate={"avg_throughput": 999.0}, dp_rank_count=2)

    assert reading is not None
    assert reading.throughput_tokens_per_s == pytest.approx(13.58)


def test_a_throughput_of_zero_in_loads_is_not_known() -> None:
    reading = loads({**RANK, "gen_throughput": 0.0})

    assert reading is not None
    assert reading.throughput_tokens_per_s is None


def test_what_one_rank_does_not_tell_is_not_known_of_all() -> None:
    reading = loads(RANK, {name: value for name, value in RANK.items() if "running" not in name})

    assert reading is not None
    assert reading.running_requests is None
    assert reading.waiting_requests == 6


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"loads": []}', b'{"loads": {"a": 1}}', b"null"])
def test_loads_without_ranks_are_none(body: bytes) -> None:
    assert read_loads(body) is None


def test_loads_that_are_no_json_are_an_error() -> None:
    with pytest.raises(ServerError, match="no JSON"):
        read_loads(b"Internal Server Error")
