"""From ten datasets to what two trainers load: prepare, run, merge, with every count explained.

The answers are a real server's, the loaders are those of SpecForge and speculators as published.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.process.run_process import ROOT
from tests.sglang.real_server import RealServer

FIXTURES = ROOT / "tests" / "sources" / "fixtures"
HERE = Path(__file__).parent
BOUND_S = 600.0
MAX_NEW_TOKENS = 48
DATASETS = {
    "A1_toucan": "a1_kimi_k2_trajectories", "A2_thoughts": "a2_kimik25_2000x",
    "B1_glaive": "b1_glaive", "B2_code": "b2_opencodeinstruct", "B3_oss": "b3_magicoder",
    "B4_mixture": "b4_mixturethoughts", "B5_open": "b5_openthoughts", "B6_chat": "b6_ultrachat",
    "B7_share": "b7_sharegpt", "B8_swe": "b8_sweagent",
}  # fmt: skip
EXISTING = [name for name in DATASETS if name.startswith("A")]


class Chain:
    """One folder with everything in it, and the commands of the README."""

    def __init__(self, folder: Path, server: RealServer) -> None:
        self.folder, self.server = folder, server

    def longwatch(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "app", *words],
            cwd=ROOT, capture_output=True, text=True, timeout=BOUND_S, check=False,
            env={**os.environ, "LONGWATCH_HOME": str(self.folder / "home")},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write_specs(self) -> None:
        raw = self.folder / "raw"
        raw.mkdir()
        sources = ["[prepare]"]
        for name, fixture in DATASETS.items():
            shutil.copy(FIXTURES / f"{fixture}.jsonl", raw)
            sources.append(f'[source.{name}]\npath = "raw/{fixture}.jsonl"')
        (self.folder / "sources.toml").write_text("\n".join(sources) + "\n")
        (self.folder / "run.toml").write_text(
            f'[run]\nname = "chain"\nserver_urls = ["{self.server.url}"]\n'
            'prompts_dir = "prepared"\noutput_dir = "prepared"\n'
            "[defaults]\ntemperature = 1.0\n"
            f"[class.short]\nconcurrency = 8\nmax_new_tokens = {MAX_NEW_TOKENS}\n"
            f"[class.long]\nconcurrency = 8\nmax_new_tokens = {MAX_NEW_TOKENS}\n"
        )

    def in_trainers(self, trainers: Path, *words: str) -> list[Any]:
        """Run a script of this folder in the trainers' environment; return its lines of JSON."""
        done = subprocess.run(
            [trainers / "bin" / "python", *words],
            cwd=self.folder, capture_output=True, text=True, timeout=BOUND_S, check=False,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(self.folder / "hf")},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return [orjson.loads(line) for line in done.stdout.splitlines() if line[:1] in "[{"]


@pytest.fixture
def chain(tmp_path: Path, real_server: RealServer) -> Chain:
    made = Chain(tmp_path, real_server)
    made.write_specs()
    return made


def test_ten_datasets_become_what_the_trainers_load(
    chain: Chain, trainers: Path, sglang_home: Path
) -> None:
    folder = chain.folder
    chain.longwatch("prepare", str(folder / "sources.toml"))
    chain.longwatch("run", str(folder / "run.toml"), "--port", "0", "--no-web")
    told = chain.longwatch(
        "merge", "chain", "--out", str(folder / "merged"), "--with", "suspect,empty",
        "--existing", str(folder / "prepared"), "--server-url", chain.server.url,
        "--tool-calls", "kimi", "--shard-tokens", "2k",
    )  # fmt: skip

    files = sorted((folder / "merged" / "data").glob("*.jsonl"))
    records = [orjson.loads(line) for path in files for line in path.read_bytes().splitlines()]
    manifest = orjson.loads((folder / "merged" / "manifest.json").read_bytes())
    assert len(files) > 1
    assert len({record["id"] for record in records}) == len(records) == manifest["records"]
    _assert_every_count(folder, manifest)
    assert all(name in told for name in DATASETS)
    assert {record["origin"] for record in records} == {"regenerated", "existing"}

    wanted = sorted([record["input_ids"], record["loss_mask"]] for record in records)
    loaded = chain.in_trainers(trainers, str(HERE / "load_specforge.py"), *map(str, files))
    assert sorted(loaded) == wanted

    chain.in_trainers(
        trainers, "-m", "speculators", "prepare-data", "--model", str(sglang_home / "tiny-llama"),
        "--data", str(folder / "merged" / "data"), "--output", str(folder / "arrow"),
        "--seq-length", "16384", "--no-skip-token-freq", "--num-preprocessing-workers", "1",
    )  # fmt: skip
    *rows, frequency = chain.in_trainers(
        trainers, str(HERE / "load_speculators.py"), str(folder / "arrow")
    )
    assert sorted(rows) == wanted
    ours = orjson.loads((folder / "merged" / "token_freq.json").read_bytes())
    assert frequency == ours


def _assert_every_count(folder: Path, manifest: dict[str, Any]) -> None:
    """Each row of each dataset is a record of its partition, or has a reason, at every step."""
    merged = {each["partition"]: each for each in manifest["partitions"]}
    assert list(merged) == [name for name in DATASETS if name not in EXISTING] + EXISTING
    for name, fixture in DATASETS.items():
        report = orjson.loads((folder / "prepared" / name / "report.json").read_bytes())
        n_rows = len((FIXTURES / f"{fixture}.jsonl").read_bytes().splitlines())
        assert report["rows_in"] == n_rows == report["kept"] + sum(report["skipped"].values())
        one = merged[name]
        assert one["samples"] == one["kept"] + sum(one["dropped"].values())
        if name in EXISTING:
            assert one["samples"] >= report["kept"]  # one for each answer of a conversation
        else:
            assert one["samples"] == report["kept"]
            assert one["kept"] == report["kept"], one
