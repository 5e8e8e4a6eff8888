"""The worker of case net-04, in a process of its own that a shell has given few files.

Run as `python -m tests.cases.few_files FOLDER URL N_ROWS CONCURRENCY`; tells what it saw as JSON.
"""

import asyncio
import json
import resource
import sys
from pathlib import Path

from tests.stage import Stage


async def main(folder: Path, url: str, n_rows: int, concurrency: int) -> None:
    stage = Stage(folder, url, concurrency=concurrency)
    stage.fill_rows([f"a{n}" for n in range(n_rows)])
    notices: set[str] = set()
    async with stage.shift() as shift:

        def is_over() -> bool:
            notices.add(stage.worker_row(shift.id).notice)
            return stage.partition().is_over

        await shift.until(is_over, "the end")
    stage.assert_consistent()
    seen = {
        "ok": stage.partition().counts.ok,
        "attempts": max(row["attempt"] for row in stage.rows().values()),
        "notices": sorted(notices - {""}),
        "soft_limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
