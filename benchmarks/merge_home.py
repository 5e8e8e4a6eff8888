"""A home with a finished run to merge: answers and prompt ids as workers and seals leave them.

Owns the shape of the data: ids of a vocabulary of 163,000, few of them common, prompts that end
inside reasoning, answers that close it, lines with text, one answer in twenty cut by its limit.
Invariant: the ledger's counters equal a recount, and files are as it says.
"""

import math
from array import array
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

from app.clock import SystemClock
from app.core.spec import ClassSpec, RunSpec, to_json
from app.core.types import PartitionId, Segment
from app.files.records import Record, encode
from app.files.tokens import TokenFile, token_path
from app.ledger import intake_rows, repairs, runs
from app.ledger.db import Ledger
from app.ledger.migrate import upgrade
from app.ledger.runs import NewPartition, NewRun
from benchmarks import homes

RUN, PARTITION, GEN_ID = "bench", "p", "bench"
VOCABULARY = 163_000
OPENS, CLOSES, ENDS = 163_606, 163_607, 163_586
POOL_TOKENS = 1_000_000
MEAN_PROMPT_TOKENS = 500
WORDS = "the quick brown fox jumps over the lazy dog and says something of some length; "
FINISHES = {
    "ok": f'{{"type":"stop","matched":{ENDS}}}',
    "truncated": '{"type":"length","length":0}',
}


class Made(NamedTuple):
    """A sample as it stands in the ledger."""

    status: str
    n_prompt: int
    prompt_offset: int
    n_answer: int
    line_offset: int
    n_bytes: int


def answers_path(folder: Path) -> Path:
    return folder / "answers" / PARTITION / "responses.jsonl"


def ids_path(folder: Path) -> Path:
    return token_path(folder / "home", 1, PARTITION)


def pool() -> "array[int]":
    """Return ids as texts have them: the n-th commonest stands a n-th as often."""
    dice, span = Random(1), math.log(VOCABULARY)
    return array("I", (int(math.exp(dice.random() * span)) for _ in range(POOL_TOKENS)))


def samples(n_tokens: int, mean_tokens: int) -> "Iterator[tuple[array[int], array[int], str]]":
    """Yield prompts and answers of together so many tokens, one in twenty cut by the limit."""
    ids, dice = pool(), Random(2)
    while n_tokens > 0:
        n_prompt = dice.randint(MEAN_PROMPT_TOKENS // 5, MEAN_PROMPT_TOKENS * 9 // 5)
        n_answer = dice.randint(mean_tokens // 5, mean_tokens * 9 // 5)
        prompt, answer = (
            ids[at : at + n]
            for n in (n_prompt, n_answer)
            for at in (dice.randrange(POOL_TOKENS - n),)
        )
        prompt[-1], answer[n_answer // 3] = OPENS, CLOSES
        status = "truncated" if dice.random() < 0.05 else "ok"
        if status == "ok":
            answer[-1] = ENDS
        yield prompt, answer, status
        n_tokens -= n_prompt + n_answer


def line_of(k: int, prompt: "array[int]", answer: "array[int]", status: str, at: datetime) -> bytes:
    rid, n = f"lw00001-00001-{k + 1:010d}-00001-00000000", len(answer)
    segment = Segment(from_token=0, rid=rid, server="http://127.0.0.1:9", gen_id=GEN_ID)
    record = Record(
        rid=rid, key=f"a{k}", index=k, partition=PARTITION, status=status,
        finish_reason=FINISHES[status], prompt_tokens=len(prompt), completion_tokens=n,
        max_new_tokens=16_384, attempts=1, segments=(segment,), gen_id=GEN_ID, started_at=at,
        finished_at=at, prompt_sha256=f"{k:064x}",
        text=(WORDS * (n * 4 // len(WORDS) + 1))[: n * 4], output_ids=answer,
    )  # fmt: skip
    return encode(record)


def write_files(folder: Path, n_tokens: int, mean_tokens: int) -> list[Made]:
    """Write answers and prompt ids in input order; return where each stands."""
    made, offset, now = [], 0, SystemClock().now()
    answers_path(folder).parent.mkdir(parents=True)
    tokens = TokenFile(ids_path(folder))
    with answers_path(folder).open("wb") as file:
        for k, (prompt, answer, status) in enumerate(samples(n_tokens, mean_tokens)):
            line = line_of(k, prompt, answer, status, now)
            file.write(line)
            (at,) = tokens.append([prompt])
            made.append(Made(status, len(prompt), at, len(answer), offset, len(line)))
            offset += len(line)
    tokens.close()
    return made


def fill(folder: Path, n_tokens: int, mean_tokens: int) -> int:
    """Make a home with a finished run of so many tokens; return how many answers it has."""
    home, now = folder / "home", SystemClock().now()
    home.mkdir(parents=True)
    upgrade(home / "ledger.db")
    ledger = Ledger(home / "ledger.db")
    spec = RunSpec(
        name=RUN, server_urls=("http://127.0.0.1:9",), prompts_dir=str(folder),
        output_dir=str(folder / "answers"),
        classes={"c": ClassSpec(concurrency=8, max_new_tokens=16_384)},
        think_open_ids=(OPENS,), think_close_ids=(CLOSES,),
    )  # fmt: skip
    new = NewRun(
        name=RUN, spec_json=to_json(spec), output_dir=spec.output_dir, token_budget=None,
        fingerprint_json="{}", gen_id=GEN_ID,
    )  # fmt: skip
    one = NewPartition(
        name=PARTITION, class_name="c", prompts_path=str(folder / f"{PARTITION}.jsonl"),
        max_new_tokens=16_384, own_concurrency=None, token_budget=None, goal_samples=None,
    )  # fmt: skip
    run_id = runs.create_run(ledger, new, [one], now)
    partition_id = runs.partitions_of(ledger, run_id)[0].id
    made = write_files(folder, n_tokens, mean_tokens)
    insert(ledger, folder, partition_id, made)
    homes.check(ledger, partition_id)
    ledger.close()
    return len(made)


def insert(ledger: Ledger, folder: Path, partition_id: PartitionId, made: list[Made]) -> None:
    for first in range(0, len(made), homes.PAGE):
        numbers = range(first, min(len(made), first + homes.PAGE))
        rows = [(k, k, 0, f"a{k}", "pending", f"{k:064x}", None, None, None) for k in numbers]
        intake_rows.insert_many(ledger, partition_id, rows)
    intake_rows.scanned(ledger, partition_id)
    intake_rows.all_tokenized(ledger, partition_id)
    path = answers_path(folder)
    with ledger.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO shard (id, partition_id, kind, path, committed_bytes, inode)"
            " VALUES (1, ?, 'sealed', ?, ?, ?)",
            (partition_id, str(path), path.stat().st_size, path.stat().st_ino),
        )
        connection.exec_driver_sql(
            "UPDATE sample SET state = ?, attempt = 1, claim_rank = 1, shard_id = 1,"
            " prompt_tokens = ?, token_offset = ?, output_tokens = ?, line_offset = ?,"
            " line_bytes = ? WHERE position = ?",
            [(*one, k) for k, one in enumerate(made)],
        )
        connection.exec_driver_sql("UPDATE run SET state = 'finished'")
    repairs.rebuild(ledger, partition_id)
