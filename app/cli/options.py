"""Flags that several commands share; each has its twin in the environment, `LONGWATCH_…`."""

from pathlib import Path
from typing import Annotated

import typer

from app.settings import PREFIX

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        envvar=f"{PREFIX}HOME",
        help="Folder of ledger, lock, token and logs.",
        show_default="./longwatch-home",
    ),
]
HostOption = Annotated[
    str | None,
    typer.Option(
        "--host",
        envvar=f"{PREFIX}HOST",
        help="Address to listen on; others than loopback need LONGWATCH_TOKEN.",
        show_default="127.0.0.1",
    ),
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port",
        envvar=f"{PREFIX}PORT",
        min=0,
        max=65_535,
        help="Port to listen on, 0 for a free one.",
        show_default="8400",
    ),
]
NoWebOption = Annotated[
    bool,
    typer.Option(
        "--no-web", envvar=f"{PREFIX}NO_WEB", help="Serve the JSON API alone, without pages."
    ),
]
OfflineAssetsOption = Annotated[
    Path | None,
    typer.Option(
        "--offline-assets",
        envvar=f"{PREFIX}OFFLINE_ASSETS",
        help="Folder with a local copy of htmx, for browsers that reach no CDN.",
        show_default="the cache folder",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", envvar=f"{PREFIX}JSON", help="Print JSON, for scripts.")
]
RunOption = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]",
        envvar=f"{PREFIX}RUN",
        help="Number or name; left out where only one run is live.",
    ),
]
EXIT_CODES_SHORT = "Exit codes: 0 done, 1 not done (bad usage included)."
EXIT_CODES_RUN = (
    "Exit codes: 0 the run is finished, 1 it could not run (bad usage included), 2 finished with"
    " failed samples, 3 stopped (it goes on when started again), or only the following was stopped."
)
EXIT_OK, EXIT_ERROR, EXIT_FAILED_SAMPLES, EXIT_STOPPED = 0, 1, 2, 3


def epilog(example: str, codes: str = EXIT_CODES_SHORT) -> str:
    """Return the end of a command's help."""
    return f"Example: {example}\n\n{codes}"
