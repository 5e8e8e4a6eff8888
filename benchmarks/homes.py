"""Homes that are prepared for a measurement: samples in bulk, as intake and workers leave them.

Owns the shortcut past a million `/tokenize` calls and answers. Invariant: counters equal a recount
and every recorded file is as the ledger says, so that a program finds nothing to repair.
"""

from array import array
from itertools import count
from pathlib import Path

from app.core.types import PartitionId, RunId
from app.files.tokens import TokenFile, token_path
from app.ledger import intake_rows, runs
from app.ledger.counters import recount
from app.ledger.db import Ledger
from app.simulator.tokenizer import encode_chat

PAGE = 5_000
LINE_BYTES = 1_000
ANSWER_TOKENS = 100
PROMPT_BYTES = 200
PROMPT_TOKENS = 200


def tokenize_all(
    ledger: Ledger,
    home: Path,
    run_id: RunId,
    partition_id: PartitionId,
    prompt_bytes: int,
    first_text: str = "",
) -> None:
    """Give every pending sample of a scanned partition the ids of a prompt of so many bytes.

    The prompt of position 0 begins with `first_text`.
    """
    name = runs.get_partition(ledger, partition_id).name
    filler = "word " * (prompt_bytes // 5 + 1)
    prompt, first = (
        array("I", encode_chat([{"role": "user", "content": words}]))
        for words in (filler[:prompt_bytes], f"{first_text} {filler}"[:prompt_bytes])
    )
    tokens = TokenFile(token_path(home, run_id, name))
    after = -1
    while page := intake_rows.untokenized(ledger, partition_id, after, PAGE):
        after = page[-1].position
        prompts = [prompt if row.position else first for row in page]
        offsets = tokens.append(prompts)
        rows = [
            intake_rows.Tokenized(
                sample_id=row.sample_id, prompt_tokens=len(ids), token_offset=offset
            )
            for row, ids, offset in zip(page, prompts, offsets, strict=True)
        ]
        intake_rows.record_tokens(ledger, partition_id, rows, [], tokens.size_tokens)
    tokens.sync()
    tokens.close()
    intake_rows.all_tokenized(ledger, partition_id)


def finish_first(ledger: Ledger, partition_id: PartitionId, n: int) -> None:
    """Make the first n samples finished ones, whose lines stand in one shard of the right size."""
    partition = runs.get_partition(ledger, partition_id)
    folder = Path(runs.get_run(ledger, partition.run_id).output_dir) / partition.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"responses-{partition.run_id}-0-0.jsonl"
    with path.open("wb") as file:
        file.truncate(n * LINE_BYTES)  # sparse: its size and inode are what is compared
    with ledger.write() as connection:
        shard_id = connection.exec_driver_sql(
            "INSERT INTO shard (partition_id, kind, path, committed_bytes, inode)"
            " VALUES (?, 'shard', ?, ?, ?) RETURNING id",
            (partition_id, str(path), n * LINE_BYTES, path.stat().st_ino),
        ).scalar_one()
        connection.exec_driver_sql(
            "UPDATE sample SET state = 'ok', attempt = 1, output_tokens = ?, shard_id = ?,"
            " line_offset = position * ?, line_bytes = ?, finish_reason = 'stop', claim_rank = 1,"
            " prompt_tokens = ?, token_offset = 0 WHERE partition_id = ? AND position < ?",
            (ANSWER_TOKENS, shard_id, LINE_BYTES, LINE_BYTES, PROMPT_TOKENS, partition_id, n),
        )
        connection.exec_driver_sql(
            "UPDATE partition SET n_pending = n_pending - ?, n_ok = n_ok + ?, n_tokenized = ?,"
            " kept_tokens = ?, received_tokens = ? WHERE id = ?",
            (n, n, n, n * ANSWER_TOKENS, n * ANSWER_TOKENS, partition_id),
        )


def check(ledger: Ledger, partition_id: PartitionId) -> None:
    problems = recount(ledger, partition_id)
    if problems:
        raise SystemExit(f"the prepared home is not consistent: {problems}")


def write_prompts(path: Path, n: int, n_bytes: int) -> None:
    """Write n chat prompts of about so many bytes each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    filler = b"the quick brown fox jumps over the lazy dog " * (n_bytes // 44 + 1)
    numbers = count()
    with path.open("wb") as file:
        for first in range(0, n, PAGE):
            file.write(
                b"".join(
                    b'{"id":"r%d","messages":[{"role":"user","content":"%d %s"}]}\n'
                    % (number, number, filler[:n_bytes])
                    for number in (next(numbers) for _ in range(min(PAGE, n - first)))
                )
            )
