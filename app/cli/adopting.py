"""`adopt`: finished work of an earlier script becomes answers of a run, after a look at it.

Owns the flags, the question before anything is written, and the lock: the home is ours meanwhile,
so nobody claims, seals or compares beside it. A look alone (`--check`) needs no lock.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from app import seams
from app.cli.adopting_order import Adoption
from app.cli.options import EXIT_OK, HomeOption, epilog
from app.cli.remote import meant, open_ledger
from app.clock import Clock
from app.errors import ConflictError, InputError
from app.events import log_event
from app.files.earlier_lines import Fields
from app.ledger import lock
from app.reopening import reopen
from app.settings import PREFIX, Settings, load_settings

_FORM = "adopt [RUN] FOLDER"


def add_commands(application: typer.Typer) -> None:
    application.command(epilog=epilog("longwatch adopt night old_output --check"))(adopt)


def adopt(  # noqa: PLR0913, PLR0917 - one parameter for each flag
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] FOLDER",
            help="The earlier script's output: FOLDER/PARTITION/raw_responses.jsonl.",
        ),
    ],
    partition: Annotated[
        list[str] | None,
        typer.Option(
            "--partition",
            envvar=f"{PREFIX}PARTITION_FILE",
            metavar="NAME=FILE",
            help="Another file for a partition; only those.",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option(envvar=f"{PREFIX}BY", help="Samples are meant by id or by index.")
    ] = "id",
    id_field: Annotated[
        str, typer.Option(envvar=f"{PREFIX}ID_FIELD", help="Field of the id, or of the index.")
    ] = "",
    ids_field: Annotated[
        str, typer.Option(envvar=f"{PREFIX}IDS_FIELD", help="Field of the answer's token ids.")
    ] = "output_ids",
    text_field: Annotated[
        str, typer.Option(envvar=f"{PREFIX}TEXT_FIELD", help="Field of the answer's text.")
    ] = "",
    finish_field: Annotated[
        str, typer.Option(envvar=f"{PREFIX}FINISH_FIELD", help="Field of how it ended.")
    ] = "finish_reason",
    prompt_field: Annotated[
        str | None,
        typer.Option(envvar=f"{PREFIX}PROMPT_FIELD", help="Field of the prompt; '' compares none."),
    ] = None,
    check: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option(
            "--check",
            "--dry-run",
            envvar=f"{PREFIX}CHECK",
            help="Only look; nothing is written.",
        ),
    ] = False,
    yes: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--yes", envvar=f"{PREFIX}YES", help="Take over without asking.")
    ] = False,
    home: HomeOption = None,
) -> int:
    """Take over what an earlier script has finished; the run goes on with the rest.

    The answers must have been made with the run's model and settings: that nobody can see of them.
    """
    *names, folder = words
    fields = _fields(by, id_field, ids_field, text_field, finish_field, prompt_field)
    settings = load_settings(home=home)
    with closing(open_ledger(settings.home)) as ledger:
        run, rest = meant(ledger, names)
        if rest:
            raise InputError(f"there are too many names: {' '.join(rest)}", hint=_FORM)
        order = Adoption(
            ledger=ledger, settings=settings, run_id=run.id, folder=Path(folder), fields=fields,
            named=_named(partition or []),
        )  # fmt: skip
        if check:
            order.look()
            return EXIT_OK
        if settings.die_at:
            seams.arm(settings.die_at)
        held = asyncio.run(_locked(settings, order.clock))
        try:
            reopen(ledger, order.clock, log_event)
            order.carry_out(is_sure=yes)
        finally:
            held.release()
    return EXIT_OK


def _fields(
    by: str, id_field: str, ids_field: str, text_field: str, finish_field: str, prompt: str | None
) -> Fields:
    if by not in ("id", "index"):
        raise InputError(f'--by "{by}" is neither id nor index', hint="take one of the two")
    usual = Fields()
    own = (id_field,) if id_field else ()
    return Fields(
        by_index=by == "index",
        id=own or usual.id,
        index=own or usual.index,
        ids=(ids_field,),
        text=(text_field,) if text_field else usual.text,
        finish=(finish_field,),
        prompt=usual.prompt if prompt is None else (prompt,) if prompt else (),
    )


def _named(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for each in given:
        name, equals, path = each.partition("=")
        if not (name and equals and path):
            raise InputError(
                f'--partition "{each}" is not NAME=FILE', hint="for example B2=old/b2.jsonl"
            )
        found[name] = path
    return found


async def _locked(settings: Settings, clock: Clock) -> lock.HomeLock:
    """Take the home; ConflictError names the service that lives there."""
    holder = lock.living_service(settings.home)
    if holder is not None:
        raise ConflictError(
            f"a service lives on {settings.home} (process {holder.pid} at {holder.address});"
            " work is taken over only while none does",
            hint="End it (Ctrl-C; what runs is saved), adopt, start the run again. --check works"
            " beside it",
        )
    return await lock.acquire(settings.home, clock)
