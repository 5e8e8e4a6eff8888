"""Lines of an earlier script: what is found in them, and what each of the others is."""

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.core.adopting import Left
from app.errors import InputError
from app.files import earlier_lines as module
from app.files.earlier_lines import Earlier, Fields, Skipped, earlier_lines
from app.files.prompt_records import Prompt, parse_record


def read(path: Path, fields: Fields | None = None) -> list[Earlier | Skipped]:
    return [each.line for each in earlier_lines(path, fields or Fields())]


def one(tmp_path: Path, fields: Fields | None = None, **record: object) -> Earlier | Skipped:
    path = tmp_path / "raw.jsonl"
    path.write_bytes(orjson.dumps(record) + b"\n")
    (found,) = read(path, fields)
    return found


def test_ids_and_how_it_ended(tmp_path: Path) -> None:
    found = one(tmp_path, id=7, output_ids=[1, 2], finish_reason={"type": "stop"}, text="ab")
    assert isinstance(found, Earlier)
    assert (found.number, found.key, found.replica) == (1, "7", 0)
    assert (list(found.found.ids or ()), found.found.text) == ([1, 2], "ab")
    assert found.found.finish_reason == {"type": "stop"}
    assert found.found.prompt_sha256s == ()


@pytest.mark.parametrize("name", ["response", "text", "output"])
def test_the_usual_names_of_a_text(tmp_path: Path, name: str) -> None:
    said: dict[str, Any] = {name: "so it is"}
    found = one(tmp_path, id="a", **said)
    assert isinstance(found, Earlier)
    assert (found.found.ids, found.found.text) == (None, "so it is")


def test_own_names(tmp_path: Path) -> None:
    fields = Fields(id=("key",), ids=("tokens",), text=("said",), finish=("why",))
    found = one(tmp_path, fields, key="a", tokens=[3], said="c", why="length", id="b", text="d")
    assert isinstance(found, Earlier)
    assert (found.key, list(found.found.ids or ())) == ("a", [3])
    assert (found.found.text, found.found.finish_reason) == ("c", "length")


@pytest.mark.parametrize(
    "record", [{"text": "x"}, {"messages": [{"role": "user", "content": "x"}]}]
)
def test_a_prompt_has_the_digest_that_it_has_in_a_prompt_file(
    tmp_path: Path, record: dict[str, object]
) -> None:
    prompt = parse_record(record, 0, 0)
    found = one(tmp_path, id="a", output_ids=[1], prompt="x")
    assert isinstance(prompt, Prompt)
    assert isinstance(found, Earlier)
    assert prompt.prompt_sha256 in found.found.prompt_sha256s
    unasked = one(tmp_path, Fields(prompt=()), id="a", output_ids=[1], prompt="x")
    assert isinstance(unasked, Earlier)
    assert unasked.found.prompt_sha256s == ()


def test_a_digest_of_ours_decides_alone(tmp_path: Path) -> None:
    found = one(tmp_path, id="a", output_ids=[1], prompt="x", prompt_sha256="abc")
    assert isinstance(found, Earlier)
    assert found.found.prompt_sha256s == ("abc",)


@pytest.mark.parametrize(
    ("line", "why", "shown"),
    [
        (b'{"id": 1,', Left.UNREADABLE, "broken JSON at character 11"),
        (b"[1]", Left.UNREADABLE, "a list, not an object"),
        (b'{"output_ids": [1], "key": 2}', Left.NO_ID, "its fields are output_ids, key"),
        (b'{"id": true, "output_ids": [1]}', Left.NO_ID, "its fields are id, output_ids"),
        (b'{"id": 1, "output_ids": "no"}', Left.BAD_IDS, "the ids are a text, not a list"),
        (b'{"id": 1, "output_ids": [1.5]}', Left.BAD_IDS, "something else than whole numbers"),
        (b'{"id": 1, "output_ids": [4294967296]}', Left.BAD_IDS, "of 2^32 and more"),
    ],
    ids=["broken", "list", "no id", "true", "text", "float", "too large"],
)
def test_what_means_no_sample_is_told(tmp_path: Path, line: bytes, why: Left, shown: str) -> None:
    path = tmp_path / "raw.jsonl"
    path.write_bytes(b'{"id": 0, "output_ids": [1]}\n\n' + line + b"\n")
    _, skipped = read(path)
    assert isinstance(skipped, Skipped)
    assert (skipped.number, skipped.why) == (3, why)
    assert shown in skipped.shown


def test_a_torn_last_line_is_torn_and_a_whole_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": 0, "output_ids": [1]}\n{"id": 1, "output_i')
    first, last = read(path)
    assert isinstance(first, Earlier)
    assert last == Skipped(2, Left.TORN, "19 bytes without an end")
    path.write_bytes(b'{"id": 0, "output_ids": [1]}')
    (whole,) = read(path)
    assert isinstance(whole, Earlier)


def test_a_line_longer_than_any_answer_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 64)
    path = tmp_path / "raw.jsonl"
    path.write_bytes(b'{"id": 0, "x": "' + b"y" * 500 + b'"}\n{"id": 1, "output_ids": [1]}\n')
    long, short = read(path)
    assert isinstance(long, Skipped)
    assert (long.why, long.number) == (Left.UNREADABLE, 1)
    assert isinstance(short, Earlier)
    assert short.number == 2


def test_packed_files_are_read_and_a_cut_one_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"id": 0, "output_ids": [1]}\n' * 2)
    path = tmp_path / "raw.jsonl.gz"
    path.write_bytes(packed)
    assert len(read(path)) == 2
    path.write_bytes(packed[:-9])
    with pytest.raises(InputError, match="damaged or cut short"):
        read(path)
