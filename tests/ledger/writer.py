"""A process that claims and settles so many samples: `python -m tests.ledger.writer`.

Takes the ledger's path, a partition and the number; waits for a line on its input before it
begins, so that several of them begin together. Prints how many samples it kept.
"""

import sys
from pathlib import Path

from app.core.types import PartitionId
from app.ledger import workers
from app.ledger.db import Ledger
from tests.ledger.hand import NOW, Hand


def main(path: str, partition: str, n: str) -> None:
    ledger = Ledger(Path(path))
    partition_id = PartitionId(int(partition))
    hand = Hand(ledger, partition_id, workers.register(ledger, partition_id, 30, NOW))
    print("ready", flush=True)
    sys.stdin.readline()
    kept = 0
    while kept < int(n) and (claimed := hand.claim(2)):
        for claim in claimed:
            hand.gain(claim, [1, 2, 3])
            hand.keep(claim, unsaved=[4])
            kept += 1
    print(kept, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
