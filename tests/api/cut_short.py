"""Truncated answers with whole lines in a home, as a worker leaves them.

Owns what such a line says; `seal` puts them where the supervisor does at the end of a run.
"""

from array import array
from pathlib import Path

from app import sealing
from app.core.states import SampleState
from app.core.types import Claim, Keep, Line, Segment, Settled, Tick
from app.files.records import Record, encode
from app.ledger import runs, settle, shards
from app.ledger.activity import Deed
from tests.api.home import GEN_ID, Home

CUT = Keep(state=SampleState.TRUNCATED, finish_reason='{"type":"length","length":100}')


def cut_short(
    home: Home,
    name: str = "B1_chat",
    n: int = 3,
    *,
    tokens: int = 100,
    outcome: Keep = CUT,
    gen_id: str = GEN_ID,
) -> list[Claim]:
    """Let the next `n` samples end with so many tokens, each its position, and a whole line."""
    claims = home.claim(name, n)
    worker_id = home._worker(name)
    partition = home.partition(name)
    path = home.output_dir / name / f"responses-1-{worker_id}-{100 + claims[0].sample_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    shard_id = shards.open_shard(home.ledger, partition.id, worker_id, str(path))
    settled, content = [], b""
    for claim in claims:
        line = encode(record(claim, name, tokens, outcome, gen_id))
        place = Line(
            shard_id=shard_id, offset=len(content), n_bytes=len(line), output_tokens=tokens
        )
        content += line
        settled.append(
            Settled(
                sample_id=claim.sample_id,
                attempt=claim.attempt,
                outcome=outcome,
                held_tokens=0,
                unsaved=home._gain(claim, tokens),
                line=place,
            )
        )
    path.write_bytes(content)
    tick = Tick(
        worker_id=worker_id,
        partition_id=partition.id,
        settled=tuple(settled),
        shard_id=shard_id,
        shard_bytes=len(content),
        shard_inode=path.stat().st_ino,
    )
    settle.settle(home.ledger, tick, home.clock.now())
    return claims


def record(claim: Claim, name: str, tokens: int, outcome: Keep, gen_id: str) -> Record:
    segment = Segment(from_token=0, rid=claim.rid, server="http://127.0.0.1:9", gen_id=gen_id)
    return Record(
        rid=claim.rid,
        key=claim.key,
        index=claim.index,
        partition=name,
        status=outcome.state,
        finish_reason=outcome.finish_reason,
        flags=outcome.flags,
        prompt_tokens=claim.prompt_tokens,
        completion_tokens=tokens,
        max_new_tokens=claim.max_new_tokens,
        attempts=claim.attempt,
        segments=(segment,),
        gen_id=gen_id,
        started_at=None,
        finished_at=None,
        prompt_sha256=claim.prompt_sha256,
        text=None,
        output_ids=array("I", [claim.position] * tokens),
    )


def lines_of(home: Home, name: str) -> list[Path]:
    return sorted((home.output_dir / name).glob("responses*.jsonl"))


def seal_all(home: Home) -> None:
    """Let the workers go, seal every partition and end the run, as the supervisor does."""
    home.leave()
    for partition in runs.partitions_of(home.ledger, home.run_id):
        sealing.seal(home.ledger, partition, home.output_dir, home.clock.now(), lambda _: None)
    deed = Deed(who="system", event="nothing left", run_id=home.run_id)
    runs.move_run(home.ledger, home.run_id, "nothing left", deed, home.clock.now())
