"""What must hold when a run has ended, whatever died on the way."""

import orjson

from app.core.spec import from_json
from app.core.spread import Measure
from app.ledger import measures, runs
from app.ledger.counters import recount
from app.simulator.answers import LengthModel, answer
from app.simulator.tokenizer import encode_chat
from tests.process.run_process import RunProcess


def assert_exactly_once(
    run: RunProcess, partition: str, texts: list[str]
) -> list[dict[str, object]]:
    """Each sample is in the sealed output once, in input order; return its lines."""
    path = run.output / partition / "responses.jsonl"
    content = path.read_bytes()
    assert content.endswith(b"\n")
    lines = [orjson.loads(line) for line in content.splitlines()]
    assert [line["index"] for line in lines] == list(range(len(texts)))
    leftovers = sorted(each.name for each in path.parent.glob("responses-*.jsonl"))
    assert leftovers == []
    return lines


def assert_answers_are_right(
    lines: list[dict[str, object]], texts: list[str], lengths: LengthModel, max_new_tokens: int
) -> None:
    """Each answer is, id by id, what an uninterrupted one would have been."""
    for line, text in zip(lines, texts, strict=True):
        prompt = encode_chat([{"role": "user", "content": text}])
        assert line["output_ids"] == list(answer(prompt, lengths, max_new_tokens)), line["rid"]
        assert line["completion_tokens"] == len(line["output_ids"])


def assert_each_measured_once(run: RunProcess) -> None:
    """Each answer is counted once in the measures, with its length, in a run without a retry."""
    view = run.run_view()
    assert view is not None
    with run.ledger() as ledger:
        for partition in runs.partitions_of(ledger, view.id):
            found = measures.spreads(ledger, partition.id)
            output, latency = found[Measure.OUTPUT], found[Measure.LATENCY]
            total = sum(bucket.total for bucket in output.buckets)
            assert (output.n, total) == (partition.counts.kept, partition.tokens.kept)
            assert latency.n == found[Measure.FIRST_TOKEN].n <= output.n


def assert_books_balance(run: RunProcess) -> None:
    """Counters equal a recount, states sum to the total, kept + wasted + held = received."""
    view = run.run_view()
    assert view is not None
    assert from_json(view.spec_json).name == view.name
    with run.ledger() as ledger:
        for partition in runs.partitions_of(ledger, view.id):
            assert recount(ledger, partition.id) == []
            assert partition.counts.running == 0
            assert partition.tokens.held == 0
            tokens = partition.tokens
            assert tokens.received == tokens.kept + tokens.wasted + tokens.held
