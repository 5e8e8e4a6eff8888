"""Making prompt files and answer records for the tests of `files/`."""

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from app.files.prompts import Prompt, Rejected, scan
from app.files.records import Record

INPUTS = Path(__file__).parent.parent / "inputs"


def write_jsonl(path: Path, rows: Iterable[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def user(key: str, content: object) -> dict[str, object]:
    return {"id": key, "messages": [{"role": "user", "content": content}]}


def prompts_in(path: Path) -> list[Prompt]:
    return [record for record in scan(path) if isinstance(record, Prompt)]


def rejected_in(path: Path) -> list[Rejected]:
    return [record for record in scan(path) if isinstance(record, Rejected)]


def only(path: Path) -> Prompt | Rejected:
    records = list(scan(path))
    assert len(records) == 1
    return records[0]


def said(prompt: Prompt) -> str:
    assert prompt.messages is not None
    return str(prompt.messages[-1]["content"])


def answer(number: int, **changes: Any) -> Record:
    values: dict[str, Any] = {
        "rid": f"lw-{number:012d}",
        "key": f"a{number}",
        "index": number,
        "partition": "B1",
        "status": "ok",
        "finish_reason": "stop",
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "max_new_tokens": 64,
        "attempts": 1,
        "gen_id": "0123456789ab",
        "started_at": None,
        "finished_at": None,
        "prompt_sha256": "f" * 64,
        "text": "TU",
        "output_ids": array("I", [87, 88, 2]),
    }
    return Record(**(values | changes))
