"""A prompt file is read whole for the fingerprint, and not again while it is the same file."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.clock import from_ms
from app.errors import ConflictError, InputError
from app.files.prompt_ids import file_sha256
from app.ledger import runs
from app.submission.prompt_digests import file_mark, prompt_digests
from tests.intake.desk import Desk, user

LATER = datetime.now(UTC) + timedelta(hours=1)


def stored(path: Path, digest: str) -> str:
    """What a run has stored that took this digest of the file as it is now."""
    return json.dumps({"fingerprint": {"prompts@p": digest}, "seen": {"p": file_mark(path)}})


def test_a_file_that_is_as_it_was_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"one\n")

    found = prompt_digests({"p": path}, stored(path, "remembered"), LATER)

    assert found.digests == {"p": "remembered"}
    assert found.seen == {"p": file_mark(path)}


def test_other_bytes_of_the_same_length_and_time_are_read(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"one\n")
    before = path.stat()
    known = stored(path, file_sha256(path))
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # until the kernel's clock has moved on
        path.write_bytes(b"two\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    found = prompt_digests({"p": path}, known, LATER)

    assert found.digests == {"p": file_sha256(path)}


def test_a_file_put_in_its_place_is_read(tmp_path: Path) -> None:
    path, other = tmp_path / "p.jsonl", tmp_path / "other"
    path.write_bytes(b"one\n")
    known = stored(path, file_sha256(path))
    other.write_bytes(b"two\n")
    other.rename(path)

    found = prompt_digests({"p": path}, known, LATER)

    assert found.digests == {"p": file_sha256(path)}


def test_a_file_that_was_written_a_moment_ago_is_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"one\n")
    written = from_ms(path.stat().st_mtime_ns // 1_000_000)

    found = prompt_digests({"p": path}, "{}", written + timedelta(seconds=1))

    assert found.digests == {"p": file_sha256(path)}
    assert found.seen == {}


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*p\.jsonl"):
        prompt_digests({"p": tmp_path / "p.jsonl"}, "{}", LATER)


async def test_a_run_goes_on_without_reading_its_prompts_and_notices_their_change(
    desk: Desk,
) -> None:
    path = desk.write("p", [user("a", "one")])
    run = await desk.submit()
    kept = json.loads(run.fingerprint_json)
    kept["fingerprint"]["prompts@p"] = "remembered"  # refused, if the file were read
    kept["seen"] = {"p": file_mark(path)}
    runs.set_identity(
        desk.ledger,
        run.id,
        fingerprint_json=json.dumps(kept),
        gen_id=run.gen_id,
        spec_json=run.spec_json,
    )

    again = await desk.submit()

    assert json.loads(again.fingerprint_json)["fingerprint"]["prompts@p"] == "remembered"
    desk.write("p", [user("a", "another")])
    with pytest.raises(ConflictError, match="prompts of p"):
        await desk.submit()
