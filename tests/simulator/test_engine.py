"""The scheduler: speed, admission, retraction, aborts, and clients that leave."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import orjson
import pytest

from app.clock import SystemClock
from app.simulator.answers import AnswerStream, answer
from app.simulator.batch import Batch
from app.simulator.counters import Counters, ServerFigures
from app.simulator.jobs import Job, Plan
from app.simulator.rendering import AnswerWriter
from app.simulator.settings import SimulatorSettings
from app.simulator.tokenizer import decode
from tests.simulator.talk import Talk, ids_of, wait_until


def make_batch(**changes: object) -> tuple[Batch, Counters]:
    settings = SimulatorSettings(**changes)  # type: ignore[arg-type]  # free-form in tests
    counters = Counters(log_limit=10)
    return Batch(settings, SystemClock(), counters, ServerFigures()), counters


def make_job(number: int, total: int, prompt: int = 400) -> Job:
    return Job(
        rid=f"r{number}",
        prompt_tokens=prompt,
        seed=number.to_bytes(16),
        words=AnswerStream(number.to_bytes(16)),
        plan=Plan(total_tokens=total, finish_reason={"type": "length", "length": total}),
        limit_tokens=total,
        interval_tokens=64,
        stream=True,
    )


@pytest.mark.parametrize(
    ("requests", "least", "most"), [(1, 85, 95), (32, 850, 1_050), (150, 1_150, 1_350)]
)
def test_speed_in_simulated_time_is_that_of_the_model_server(
    requests: int, least: float, most: float
) -> None:
    batch, counters = make_batch(kv_tokens=10_000_000)
    batch.queue.extend(make_job(number, 100_000) for number in range(requests))
    batch.admit()
    begin = batch.now_s
    batch.advance(begin + 60)
    assert least < counters.generated_tokens / 60 < most


def test_full_pool_retracts_and_every_job_still_ends_with_all_its_tokens() -> None:
    batch, counters = make_batch(kv_tokens=20_000, prefix_cache=False)
    jobs = [make_job(number, 2_000 + 40 * number, prompt=100) for number in range(40)]
    batch.queue.extend(jobs)
    for second in range(1, 2_000):
        batch.advance(float(second))
        assert batch.used_tokens <= 20_000
        held = sum(job.prompt_tokens + job.made(batch.steps) for job in batch.running.values())
        assert batch.used_tokens == held
    assert counters.retractions > 0
    assert sum(job.retractions for job in jobs) == counters.retractions
    assert all(job.finished and job.done == job.total for job in jobs)
    assert batch.used_tokens == 0


def test_queue_is_served_first_come_first_served_within_the_running_limit() -> None:
    batch, _ = make_batch(max_running=2)
    jobs = [make_job(number, 100) for number in range(4)]
    batch.queue.extend(jobs)
    batch.advance(0.5)
    assert [job.joined_step is not None for job in jobs] == [True, True, False, False]
    batch.advance(60.0)
    assert all(job.finished for job in jobs)


def test_retracted_streams_bring_the_same_answer(start: Callable[..., Talk]) -> None:
    talk = start(kv_tokens=3_000, max_running=16, time_factor=60, incremental=True)
    texts = [f"row {number} @@len=600" for number in range(12)]

    def read(text: str) -> list[int]:
        events = talk.stream(text, max_new_tokens=700, stream_interval=16)
        assert events.pop() == "[DONE]"
        return [token for event in events for token in event["output_ids"]]

    talk.simulator.freeze()  # all join at once: together they need more than the pool has
    with ThreadPoolExecutor(len(texts)) as pool:
        reading = [pool.submit(read, text) for text in texts]
        wait_until(lambda: talk.simulator.stats.queued == len(texts), "all to wait")
        talk.simulator.unfreeze()
        answers = [each.result() for each in reading]
    lengths = talk.simulator.settings.lengths
    assert answers == [answer(ids_of(text), lengths, 700) for text in texts]
    assert talk.simulator.stats.retractions > 0


def test_abort_ends_a_running_stream_with_what_it_has(start: Callable[..., Talk]) -> None:
    talk = start(time_factor=5)
    body = talk.body("a @@len=9000", stream=True, max_new_tokens=9000) | {"rid": "job-1"}
    with talk.http.stream("POST", "/generate", json=body) as response:
        wait_until(lambda: talk.simulator.stats.delivered_tokens > 3, "some tokens")
        assert talk.http.post("/abort_request", json={"rid": "job"}).status_code == 200
        assert talk.http.post("/abort_request", json={"rid": "job-1"}).content == b""
        raw = response.read()
    last, done = raw.split(b"\n\n")[-3:-1]
    assert done == b"data: [DONE]"
    assert (
        b'"finish_reason":{"type":"abort","message":"Aborted","status_code":null,"err_type":null}'
        in last
    )
    assert talk.simulator.stats.aborts == 1
    assert talk.simulator.stats.running == 0


def test_abort_in_the_queue_has_its_own_message_and_few_fields(
    start: Callable[..., Talk],
) -> None:
    talk = start(max_running=1)
    first = talk.body("a @@len=9000", stream=True, max_new_tokens=9000)
    with talk.http.stream("POST", "/generate", json=first):
        wait_until(lambda: talk.simulator.stats.running == 1, "the first to run")
        waiting = talk.body("b", stream=True) | {"rid": "waits"}
        with talk.http.stream("POST", "/generate", json=waiting) as response:
            wait_until(lambda: talk.simulator.stats.queued == 1, "the second to wait")
            talk.http.post("/abort_request", json={"rid": "waits"})
            raw = response.read()
    assert b'"finish_reason":{"type":"abort","message":"Abort in waiting queue"}' in raw
    assert b"cached_tokens" not in raw


def test_abort_all_ends_everything(start: Callable[..., Talk]) -> None:
    talk = start()
    body = talk.body("a @@len=9000", stream=True, max_new_tokens=9000)
    stats = talk.simulator.stats
    with (
        talk.http.stream("POST", "/generate", json=body) as one,
        talk.http.stream("POST", "/generate", json=body) as two,
    ):
        wait_until(lambda: stats.running == 2, "both to run")
        talk.http.post("/abort_request", json={"abort_all": True})
        assert b'"Aborted"' in one.read()
        assert b'"Aborted"' in two.read()


def test_client_that_leaves_a_stream_frees_its_place_at_once(start: Callable[..., Talk]) -> None:
    talk = start()
    body = talk.body("a @@len=9000", stream=True, max_new_tokens=9000)
    stats = talk.simulator.stats
    with talk.http.stream("POST", "/generate", json=body):
        wait_until(lambda: stats.running == 1, "the stream to run")
    wait_until(lambda: stats.running == 0, "the place to be free")
    wait_until(lambda: stats.in_flight == 0, "the request to be out of the books")
    assert stats.disconnects == 1
    assert stats.requests()[0].outcome == "disconnect"


def test_client_that_leaves_a_whole_answer_is_noticed_after_the_servers_poll(
    start: Callable[..., Talk],
) -> None:
    talk = start(nonstream_disconnect_s=0.05)
    with pytest.raises(httpx.ReadTimeout):
        talk.http.post("/generate", json=talk.body("a @@len=9000"), timeout=0.2)
    stats = talk.simulator.stats
    wait_until(lambda: stats.running == stats.in_flight == 0, "the place to be free")
    assert (stats.disconnects, stats.aborts) == (1, 1)


def test_abort_after_a_retraction_repeats_the_last_id_when_streaming_in_parts() -> None:
    settings = SimulatorSettings(incremental=True)
    job = make_job(1, 50)
    job.done = job.due = 7
    writer = AnswerWriter(job, settings, SystemClock(), shows_end_text=False)
    writer.event(7, settings, None)
    reason = {"type": "abort", "message": "Abort in waiting queue"}
    last = orjson.loads(writer.queue_abort(settings, reason))
    assert last["output_ids"] == job.ids(6, 7)
    assert last["text"] == decode(job.ids(0, 7))
    assert last["meta_info"]["completion_tokens"] == 7


def test_prompt_seen_before_comes_from_the_cache(start: Callable[..., Talk]) -> None:
    talk = start(time_factor=100)
    metas = [talk.ask("a @@len=20").json()["meta_info"] for _ in range(2)]
    assert metas[0]["cached_tokens"] == 0
    assert metas[0]["cached_tokens_details"] is None
    assert metas[1]["cached_tokens"] == metas[1]["prompt_tokens"] - 1


def test_idle_server_has_no_timer(start: Callable[..., Talk]) -> None:
    talk = start(time_factor=100)
    talk.ask("a @@len=20")
    wait_until(lambda: talk.simulator.ask(lambda m: m.engine.idle), "the last timer to be gone")


def test_frozen_server_is_healthy_and_silent_and_goes_on_when_thawed(
    start: Callable[..., Talk],
) -> None:
    talk = start(time_factor=20)
    body = talk.body("a @@len=400", stream=True, max_new_tokens=900)
    stats = talk.simulator.stats
    with talk.http.stream("POST", "/generate", json=body) as response:
        wait_until(lambda: stats.delivered_tokens > 0, "the first token")
        talk.simulator.freeze()
        made = stats.generated_tokens
        assert talk.http.get("/health").status_code == 200
        assert stats.generated_tokens == made
        talk.simulator.unfreeze()
        assert b"[DONE]" in response.read()
    assert stats.generated_tokens == 400
