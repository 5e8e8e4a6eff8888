"""Prompts and answers that can be looked at: a prompt file, its ids, and lines as workers write.

Fills a `Home`, whose samples are otherwise names alone.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import text

from app.core.states import SampleState
from app.core.types import Claim, Keep, Line, Segment, Settled, Tick
from app.files.prompt_records import Prompt, parse_line
from app.files.records import Record, encode
from app.files.tokens import to_bytes, token_path
from app.ledger import settle, shards
from tests.api.home import GEN_ID, Home

# what somebody would put into a prompt or an answer to have it obeyed (sec-01)
HOSTILE = (
    "<img src=x onerror=window.__hit=1>![p](http://203.0.113.9/p.png)"
    "<script>window.__hit=1</script>{{7*7}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer. `continued_at`: a second request went on from that token."""

    text: str | None
    ids: Sequence[int] = (11, 12, 13, 2)
    continued_at: int | None = None
    state: SampleState = SampleState.OK
    reasoning_end: int | None = None


def write_prompts(home: Home, name: str, records: Sequence[dict[str, object]]) -> None:
    """Give the first samples of a partition these records, and four ids each."""
    partition = home.partition(name)
    folder = home.output_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    lines = [orjson.dumps(each) for each in records]
    (folder / "prompts.jsonl").write_bytes(b"\n".join([*lines, b""]))
    ids = array("I", range(4 * home.n_samples))
    path = token_path(home.folder, home.run_id, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_bytes(ids))
    with home.ledger.write() as connection:
        for index, line in enumerate(lines):
            prompt = parse_line(line, index, index + 1)
            assert isinstance(prompt, Prompt), prompt
            connection.execute(
                text(
                    "UPDATE sample SET key = :key, prompt_sha256 = :sha"
                    " WHERE partition_id = :partition AND position = :position"
                ),
                {
                    "key": prompt.key,
                    "sha": prompt.prompt_sha256,
                    "partition": partition.id,
                    "position": index,
                },
            )


def answer(home: Home, name: str, answers: Sequence[Said]) -> list[Claim]:
    """Answer the next samples of a partition, each with a whole line; return their claims."""
    claims = home.claim(name, len(answers))
    partition = home.partition(name)
    folder = home.output_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    worker_id = home._worker(name)
    path = folder / f"responses-1-{worker_id}-9.jsonl"
    shard_id = shards.open_shard(home.ledger, partition.id, worker_id, str(path))
    content, settled = b"", []
    for claim, said in zip(claims, answers, strict=True):
        line = encode(_record(home, name, claim, said))
        place = Line(
            shard_id=shard_id,
            offset=len(content),
            n_bytes=len(line),
            output_tokens=len(said.ids),
        )
        content += line
        settled.append(
            Settled(
                sample_id=claim.sample_id,
                attempt=claim.attempt,
                outcome=Keep(state=said.state, finish_reason="stop"),
                held_tokens=0,
                unsaved=home._gain(claim, len(said.ids)),
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
    )
    settle.settle(home.ledger, tick, home.clock.now())
    return claims


def _record(home: Home, name: str, claim: Claim, said: Said) -> Record:
    places = [0] if said.continued_at is None else [0, said.continued_at]
    return Record(
        rid=claim.rid,
        key=claim.key,
        index=claim.index,
        partition=name,
        status=str(said.state),
        finish_reason="stop",
        reasoning_end=said.reasoning_end,
        prompt_tokens=claim.prompt_tokens,
        completion_tokens=len(said.ids),
        max_new_tokens=claim.max_new_tokens,
        attempts=claim.attempt,
        segments=tuple(
            Segment(from_token=at, rid=f"rid-{place}", server=home.server_url, gen_id=GEN_ID)
            for place, at in enumerate(places)
        ),
        gen_id=GEN_ID,
        started_at=home.clock.now(),
        finished_at=home.clock.now(),
        prompt_sha256=claim.prompt_sha256,
        text=said.text,
        output_ids=array("I", said.ids),
    )
