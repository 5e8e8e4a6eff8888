"""Files to rows: kinds, packings, damage, folders; each row with its number."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pyarrow
import pytest
import zstandard
from pyarrow import ipc, parquet

from app.errors import InputError
from app.sources.finding import find_sources
from app.sources.hub import read_hub
from app.sources.readers import MAX_ARRAY_BYTES, Position, Unreadable, read_rows
from app.sources.spec import HubSpec, load_prepare_spec
from tests.sources.desk import Desk

ROWS = [{"id": "a", "text": "one\ntwo, ü"}, {"id": "b", "text": 'say "x"'}]


def rows_in(path: Path) -> list[tuple[int, object]]:
    return list(read_rows(path, Position()))


def as_lines(rows: list[dict[str, str]]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def as_csv(_: object) -> bytes:
    return 'id,text\r\na,"one\ntwo, ü"\r\n\r\nb,"say ""x"""\r\n'.encode("utf-8-sig")


def zstd(plain: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(plain)


def only_text(value: object) -> str:
    """Name a case by its texts: the bytes of a gzip have the time in them."""
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(
    ("name", "written", "numbers"),
    [
        ("r.jsonl", as_lines(ROWS), [1, 2]),
        ("R.JSONL.gz", gzip.compress(as_lines(ROWS)), [1, 2]),
        ("r.jsonl.zst", zstd(as_lines(ROWS)), [1, 2]),
        ("r.json", json.dumps(ROWS, indent=2).encode(), [1, 2]),
        ("r.json.gz", gzip.compress(b"\xef\xbb\xbf \n" + orjson.dumps(ROWS)), [1, 2]),
        ("lines.json", as_lines(ROWS), [1, 2]),
        ("r.csv", as_csv(ROWS), [2, 5]),
        ("r.csv.zst", zstd(as_csv(ROWS)), [2, 5]),
    ],
    ids=only_text,
)
def test_every_kind_gives_the_same_rows(
    tmp_path: Path, name: str, written: bytes, numbers: list[int]
) -> None:
    path = tmp_path / name
    path.write_bytes(written)
    position = Position()

    found = list(read_rows(path, position))

    assert [row for _, row in found] == ROWS
    assert [number for number, _ in found] == numbers


def write_parquet(path: Path) -> None:
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)


def write_arrow_file(path: Path) -> None:
    table = pyarrow.Table.from_pylist(ROWS)
    with ipc.new_file(path, table.schema) as file:
        file.write_table(table)


def write_arrow_stream(path: Path) -> None:
    table = pyarrow.Table.from_pylist(ROWS * 300)  # more than a batch of ours
    with path.open("wb") as raw, ipc.new_stream(raw, table.schema) as file:
        file.write_table(table)


@pytest.mark.parametrize(
    ("name", "write", "n"),
    [
        ("r.parquet", write_parquet, 2),
        ("file.arrow", write_arrow_file, 2),
        ("stream.arrow", write_arrow_stream, 600),
    ],
)
def test_tables_give_their_rows_and_a_cut_one_is_an_error(
    tmp_path: Path, name: str, write: Callable[[Path], None], n: int
) -> None:
    path = tmp_path / name
    write(path)

    found = rows_in(path)

    assert [row for _, row in found] == ROWS * (n // 2)
    assert [number for number, _ in found] == list(range(1, n + 1))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match=f"{name} is damaged or cut short"):
        rows_in(path)


def test_text_in_a_table_that_is_no_utf_8_loses_its_own_row_only(tmp_path: Path) -> None:
    texts = pyarrow.array([b"one", b"\xff", b"three"]).view(pyarrow.utf8())
    parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "r.parquet")

    found = rows_in(tmp_path / "r.parquet")

    assert [number for number, _ in found] == [1, 2, 3]
    assert [row for _, row in found] == [
        {"text": "one"}, Unreadable("not readable: text that is not UTF-8"), {"text": "three"}
    ]  # fmt: skip


def test_rows_of_csv_that_are_broken_are_told_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b'id,text\na,b\na\n\xff,b\n"a"b,c\nd,e\n')

    found = rows_in(path)

    assert found == [
        (2, {"id": "a", "text": "b"}),
        (3, Unreadable("1 fields, the first line has 2")),
        (4, Unreadable("not valid Unicode: bytes that are not UTF-8")),
        (5, Unreadable("no CSV: ',' expected after '\"'")),
        (6, {"id": "d", "text": "e"}),
    ]


def test_a_field_of_csv_may_be_as_long_as_a_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"text\n{'a' * 200_000}\n")

    assert rows_in(path) == [(2, {"text": "a" * 200_000})]


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("r.csv", b'id,text\na,"never closed\n', r"cut short: a quote in line 2 is never closed"),
        ("r.csv", b"id,id\na,b\n", r'has the column "id" twice'),
        ("r.json", b'[{"a": 1}, {"a"', r"is broken JSON at character \d+"),
        ("r.json", b'{\n "rows": []\n}', r"is neither a JSON array of rows nor one object per"),
        ("r.json", b"7", r"is neither a JSON array"),
        ("r.json.gz", gzip.compress(b"[" + b"1," * 9999)[:-9], r"is damaged or cut short"),
        ("r.csv.zst", zstd(b"a,b\n" * 9999)[:-5], r"is damaged or cut short"),
        ("r.parquet", b"no table", r"is damaged or cut short"),
    ],
    ids=only_text,
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, written: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(written)

    with pytest.raises(InputError, match=f"{path}.*{said}"):
        rows_in(path)


def test_what_only_python_takes_for_json_loses_its_own_rows_of_an_array(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text('[{"a": NaN}, {"a": "\\ud83d"}, {"a": 1}, 5]')

    assert rows_in(path) == [
        (1, Unreadable("NaN and Infinity are not JSON")),
        (2, Unreadable("not valid Unicode: half of a surrogate pair (a lone \\ud800 to \\udfff)")),
        (3, {"a": 1}),
        (4, 5),
    ]
    assert MAX_ARRAY_BYTES == 2 << 30


def test_the_position_is_told_in_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(as_lines(ROWS) * 20_000)
    position = Position()
    told = [position.tell() for _ in read_rows(path, position)]

    assert told == sorted(told)
    assert 0 < told[0] < told[-1] == path.stat().st_size


def test_a_folder_is_read_in_sorted_order_without_what_is_hidden(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name in (
        "raw/b.jsonl", "raw/a/2.jsonl", "raw/a/10.csv", "raw/.hidden/x.jsonl", "raw/.y.jsonl",
        "raw/README.md", "raw/dataset_info.json", "raw/z.parquet",
    ):  # fmt: skip
        desk.write(name, {})
    path = desk.spec('[source.p]\npath = "raw"')

    found = find_sources(load_prepare_spec(path), path)["p"]

    assert [file.label for file in found] == [
        "raw/a/10.csv", "raw/a/2.jsonl", "raw/b.jsonl", "raw/z.parquet"
    ]  # fmt: skip


def test_wrong_paths_are_all_told_at_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write("raw/notes.txt", {})
    path = desk.spec(
        '[source.a]\npath = ["gone.jsonl", "raw/notes.txt"]\n[source.b]\npath = "raw"\n'
    )

    with pytest.raises(InputError) as refused:
        find_sources(load_prepare_spec(path), path)

    said = str(refused.value)
    assert f"{path}: 3 problems" in said
    assert f"[source.a].path: there is no {tmp_path / 'gone.jsonl'}" in said
    assert f"[source.a].path: {tmp_path / 'raw/notes.txt'} is of no kind that can be read" in said
    assert f"[source.b].path: {tmp_path / 'raw'} has no file of rows; read are .jsonl" in said


def test_without_its_extra_a_source_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("pyarrow", "datasets"):
        monkeypatch.setitem(sys.modules, library, None)  # what an import meets where it is missing

    with pytest.raises(InputError, match=r'pip install "longwatch\[parquet\]"'):
        rows_in(tmp_path / "r.parquet")
    with pytest.raises(InputError, match=r'hub = owner/name needs.*"longwatch\[hub\]"'):
        list(read_hub(HubSpec(name="owner/name"), Position()))
