"""A folder with source files, and a source prepared in it by this very process."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from app.sources.finding import find_sources
from app.sources.partitions import Outcome, whole
from app.sources.preparing import Job
from app.sources.spec import load_prepare_spec
from app.sources.writing import draft_folder, remove_drafts

INPUTS = Path(__file__).parents[1] / "inputs"
# two members of two rows each: inp-11
MULTI_MEMBER_GZIP = base64.b64decode(
    "H4sIAAAAAAACA6tWykxRslJQSjdU0lFQyk0tLk5MTy0GikRXKxXl56SC5EqLU4tAssn5eSWpeSUgofy8VKXa2Fquaph2I5K0"
    "l5Tng7UDAFCmL4x+AAAAH4sIAAAAAAACA6tWykxRslJQSjdW0lFQyk0tLk5MTy0GikRXKxXl56SC5EqLU4tAssn5eSWpeSUgoZ"
    "KMotRUpdrYWq5qmAEmJBmQll9aBNYPAABI2K+BAAAA"
)


def user(key: str | None, content: object) -> dict[str, object]:
    row: dict[str, object] = {"messages": [{"role": "user", "content": content}]}
    return row if key is None else {"id": key, **row}


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


@dataclass(frozen=True)
class Desk:
    folder: Path

    def write(self, name: str, *rows: object) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        chunks = (row if isinstance(row, bytes) else orjson.dumps(row) for row in rows)
        path.write_bytes(b"".join(chunk + b"\n" for chunk in chunks))
        return path

    def spec(self, text: str) -> Path:
        path = self.folder / "sources.toml"
        path.write_text(text)
        return path

    def prepare(
        self, settings: str = "", *, path: str = "p.jsonl", overwrite: bool = False
    ) -> "Kept":
        """Prepare one source, the partition `p`."""
        spec_path = self.spec(f'[source.p]\npath = "{path}"\n{settings}')
        spec = load_prepare_spec(spec_path)
        (source,) = spec.sources
        partition = spec.output_dir / "p"
        job = Job(
            source=source,
            files=tuple(find_sources(spec, spec_path)["p"]),
            draft=draft_folder(partition, 1),
            seed=spec.seed,
        )
        try:
            outcome = whole(job, overwrite, lambda _rows, _bytes: None)
        finally:
            remove_drafts(partition)
        return Kept(partition, outcome)


@dataclass(frozen=True)
class Kept:
    """What a preparation has written."""

    folder: Path
    outcome: Outcome

    @property
    def report(self) -> dict[str, Any]:
        return dict(self.outcome.report or {})

    @property
    def prompts(self) -> list[dict[str, Any]]:
        return lines_of(self.folder / "prompts.jsonl")

    @property
    def places(self) -> list[dict[str, Any]]:
        return lines_of(self.folder / "kept.jsonl")

    @property
    def skipped(self) -> list[dict[str, Any]]:
        return lines_of(self.folder / "skipped.jsonl")

    def reasons(self) -> dict[int, str]:
        return {one["row"]: one["reason"] for one in self.skipped}

    def said(self) -> dict[str, str]:
        """Return what each prompt ends with, by id."""
        return {one["id"]: one["messages"][-1]["content"] for one in self.prompts}

    def assert_whole(self, n_rows: int) -> None:
        """Every row is in exactly one place, and everybody counts the same."""
        kept = [one["row"] for one in self.places]
        skipped = [one["row"] for one in self.skipped]
        assert kept == sorted(kept)
        assert skipped == sorted(skipped)
        assert sorted(kept + skipped) == list(range(n_rows))
        assert len(self.prompts) == len(kept) == self.report["kept"]
        assert sum(self.report["skipped"].values()) == len(skipped)
        assert self.report["rows_in"] == n_rows
        assert len({one["id"] for one in self.prompts}) == len(kept)
