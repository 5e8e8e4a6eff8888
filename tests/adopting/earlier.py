"""A run of twelve samples that nobody has begun, and what an earlier script had made of them.

Owns the earlier file: whole answers are those that the simulated model makes of the prompts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import orjson

from app.adopting import Look, Looked, Taken, look_at, sources_of, take_over
from app.adopting.looking import Progress
from app.core.spec import ClassSpec, PartitionSpec, RunSpec, to_json
from app.core.views import RunView
from app.files.earlier_lines import Fields
from app.ledger import runs
from app.simulator.answers import LengthModel, answer
from app.simulator.server import SimulatorThread
from tests.stage import Stage, random_texts

N, LIMIT = 12, 60
MODEL = LengthModel(mean_tokens=30, cap_tokens=50)


def silent(*_: object) -> None:
    """Take a progress and say nothing."""


@dataclass
class Earlier:
    folder: Path
    simulator: SimulatorThread
    progress: Progress = silent
    stage: Stage = field(init=False)

    def __post_init__(self) -> None:
        self.stage = Stage(self.folder, self.simulator.url, max_new_tokens=LIMIT)
        self.stage.fill(random_texts(N, seed=3))
        spec = RunSpec(
            name="test",
            server_urls=(self.simulator.url,),
            prompts_dir="-",
            output_dir=str(self.stage.output),
            classes={"short": ClassSpec(concurrency=8, max_new_tokens=LIMIT)},
            partitions={"p": PartitionSpec(class_name="short")},
        )
        with self.stage.ledger.write() as connection:
            connection.exec_driver_sql("UPDATE run SET spec_json = ?", (to_json(spec),))
        self.path = self.folder / "old" / "p" / "raw_responses.jsonl"
        self.path.parent.mkdir(parents=True)

    @property
    def run(self) -> RunView:
        return runs.get_run(self.stage.ledger, self.stage.run_id)

    def ids(self, n: int) -> list[int]:
        return list(answer(self.stage.prompts[n], MODEL, LIMIT))

    def line(self, n: int, **changes: object) -> dict[str, object]:
        whole: dict[str, object] = {
            "id": f"row{n}",
            "output_ids": self.ids(n),
            "finish_reason": {"type": "stop", "matched": self.ids(n)[-1]},
        }
        merged = whole | changes
        return {name: value for name, value in merged.items() if value is not None}

    def write(self, *lines: Mapping[str, object], tail: bytes = b"") -> None:
        self.path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines) + tail)

    def look(self, fields: Fields | None = None) -> Looked:
        run = self.run
        (source,) = sources_of(self.stage.ledger, run, self.folder / "old", {})
        look = Look.of(self.stage.ledger, run, fields or Fields())
        return look_at(self.stage.ledger, look, source, self.progress)

    def take(self, looked: Looked | None = None, fields: Fields | None = None) -> Taken:
        return take_over(
            self.stage.ledger,
            Look.of(self.stage.ledger, self.run, fields or Fields()),
            looked or self.look(fields),
            encode_texts=self.encoded,
            who="operator",
            clock=self.stage.clock,
            random=Random(5),
            progress=self.progress,
        )

    async def encoded(self, texts: object) -> list[list[int]]:
        raise AssertionError(f"no ids are to be made of {texts}")

    def lines(self) -> dict[str, dict[str, Any]]:
        """Return what stands in the shards, each sample once and where the ledger says."""
        self.stage.assert_consistent()
        return self.stage.answers()
