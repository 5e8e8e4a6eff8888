"""`longwatch extend`: truncated answers go on under a higher limit. Parses, then hands over."""

from typing import Annotated
from urllib.parse import quote

import typer

from app.api.carry_out import carry_out_extend
from app.api.schemas import ExtendOrder
from app.cli.options import EXIT_OK, HomeOption, epilog
from app.cli.remote import living_api, meant, open_ledger
from app.cli.voice import say
from app.clock import SystemClock
from app.core.numbers import typed_whole
from app.core.spec_parse import MAX_NEW_TOKENS
from app.errors import InputError
from app.settings import PREFIX, load_settings


def add_commands(application: typer.Typer) -> None:
    """Register the command of this module."""
    example = "longwatch extend night B1_glaive --max-new-tokens 20480"
    application.command(epilog=epilog(example))(extend)


def extend(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] PARTITION", help="The run is left out where only one is live."
        ),
    ],
    max_new_tokens: Annotated[
        str,
        typer.Option(
            "--max-new-tokens",
            envvar=f"{PREFIX}MAX_NEW_TOKENS",
            metavar="N",
            help="How long an answer of the partition may be from now on.",
        ),
    ],
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason",
            envvar=f"{PREFIX}REASON",
            help="Only answers whose flags contain it, such as 'thinking not closed'.",
        ),
    ] = None,
    home: HomeOption = None,
) -> int:
    """Raise a partition's max_new_tokens; its truncated answers go on from where they stopped.

    Each answer stays in the output as it is until its longer form has come. Killed half-way, give
    the same order again.
    """
    order = ExtendOrder(max_new_tokens=_length(max_new_tokens), reason=reason)
    settings = load_settings(home=home)
    ledger = open_ledger(settings.home)
    try:
        run, rest = meant(ledger, words)
        if len(rest) != 1:
            raise InputError(
                "extend needs one partition", hint="extend [RUN] PARTITION --max-new-tokens N"
            )
        with living_api(settings) as api:
            if api is not None:
                path = f"/runs/{run.id}/partitions/{quote(rest[0], safe='')}/extend"
                # no limit of time: it may read many gigabytes, and says so when it is done
                answer = api.post(path, order.model_dump(), timeout_s=None)
                say(str(answer["sentence"]))
                return EXIT_OK
        who, now = "operator (command line)", SystemClock().now()
        say(carry_out_extend(ledger, run, rest[0], order, who=who, now=now).sentence)
        say("No service runs on this home: it takes effect when the run next starts.")
    finally:
        ledger.close()
    return EXIT_OK


def _length(given: str) -> int:
    n = typed_whole(given) or 0
    if not 1 <= n <= MAX_NEW_TOKENS:
        raise InputError(
            f'max_new_tokens "{given[:40]}" is not a whole number from 1 to {MAX_NEW_TOKENS:,}',
            hint="Write for example 20480",
        )
    return n
