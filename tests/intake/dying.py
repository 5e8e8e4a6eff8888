"""A process of its own that submits and tokenizes a run and dies at a seam: `dying.py FOLDER URL`.

Not a test. Takes the seam from its third argument; without one it goes through to the end.
"""

import asyncio
import sys
from pathlib import Path

from app import seams
from app.simulator.server import SimulatorThread
from tests.intake.desk import Desk


async def main(folder: Path, url: str, seam: str) -> None:
    simulator = SimulatorThread(port=0)
    simulator.url = url  # somebody else's; this object only carries the address
    desk = Desk(folder, simulator)
    desk.change(samples_per_prompt=2)
    if seam:
        seams.arm(seam)
    await desk.submit()
    await desk.tokenize()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
