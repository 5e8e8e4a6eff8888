"""A process that takes a home's lock: `python -m tests.ledger.lock_holder HOME [child]`.

Prints its pid, or the refusal. With `child` it starts a process that inherits the descriptor, as a
worker does, and prints that one's pid too. Holds on until its input ends.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

from app.clock import SystemClock
from app.errors import ConflictError
from app.ledger.lock import acquire


def main(home: str, *how: str) -> int:
    try:
        lock = asyncio.run(acquire(Path(home), SystemClock()))
    except ConflictError as refusal:
        print(refusal, flush=True)
        return 1
    lock.announce("http://127.0.0.1:8400")
    pids = [str(lock.holder.pid)]
    if how:
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], pass_fds=[lock.descriptor]
        )
        pids.append(str(child.pid))
    print(*pids, flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
