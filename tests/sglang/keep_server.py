"""keep_server.py HOME LOG READY [FLAG...]: one real server for a shell script, until SIGTERM.

Writes the server's address to READY once it is healthy, and prints the end of LOG if it never is.
The server's group is ended on every way out, so that a script has one process id to end.
"""

import signal
import sys
from pathlib import Path
from types import FrameType

from tests.sglang.real_server import RealServer


def _leave(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def main(home: str, log: str, ready: str, *flags: str) -> None:
    signal.signal(signal.SIGTERM, _leave)
    server = RealServer(Path(home), Path(log))
    try:
        server.start(*flags)
        server.wait_ready()
        Path(ready).write_text(server.url)
        signal.pause()
    except AssertionError as error:
        sys.exit(str(error))
    finally:
        server.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
