"""The way in: `python -m app` is `longwatch`.

Owns nothing but that Ctrl-C while the rest is still being loaded is a quiet end, as it is later.
Until then it ends the process at once: raised inside an import it could come out as any error.
"""

import os
import signal
import sys

_STOPPED = 3


def main() -> int:
    """Run the command line; return its exit code."""
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(_STOPPED))
    from app.cli import main as command  # noqa: PLC0415 - loading takes long enough for Ctrl-C

    signal.signal(signal.SIGINT, before)
    try:
        return command()
    except KeyboardInterrupt:
        return _STOPPED


if __name__ == "__main__":
    sys.exit(main())
