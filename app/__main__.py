"""The way in: `python -m app` is `longwatch`.

Owns nothing but that Ctrl-C while the rest is still being loaded is a quiet end, as it is later.
"""

import sys

_STOPPED = 3


def main() -> int:
    """Run the command line; return its exit code."""
    try:
        from app.cli import main as command  # noqa: PLC0415 - loading takes long enough for Ctrl-C

        return command()
    except KeyboardInterrupt:
        return _STOPPED


if __name__ == "__main__":
    sys.exit(main())
