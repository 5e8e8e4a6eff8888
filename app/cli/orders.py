"""Orders to a run: pause, drain, resume, stop, retry, and its limits. Parses, then hands over."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from app.api.schemas import (
    BudgetOrder,
    ConcurrencyOrder,
    DeadlineOrder,
    DrainOrder,
    GoalOrder,
    PauseOrder,
    ResumeOrder,
    RetryOrder,
    RunOrder,
    StopOrder,
)
from app.cli.options import EXIT_OK, HomeOption, epilog
from app.cli.remote import give_order
from app.cli.voice import say
from app.clock import SystemClock
from app.core.deadlines import NONE, deadline_problem
from app.core.numbers import typed_whole
from app.core.spec import parse_tokens
from app.errors import InputError, plain_words
from app.settings import PREFIX, load_settings

_NONE = "none"
_SHARED = "auto"


class RetryState(StrEnum):
    FAILED = "failed"
    EMPTY = "empty"
    SUSPECT = "suspect"


def _words(what: str) -> object:
    return typer.Argument(metavar=what, help="The run is left out where only one is live.")


Targets = Annotated[list[str] | None, _words("[RUN] [PARTITION]...")]
OneRun = Annotated[list[str] | None, _words("[RUN]")]
OneTarget = Annotated[list[str] | None, _words("[RUN] [PARTITION]")]
ValueWords = Annotated[list[str], _words("[RUN] PARTITION VALUE")]
BudgetWords = Annotated[list[str], _words("[RUN] [PARTITION] TOKENS")]
DeadlineWords = Annotated[list[str], _words("[RUN] [PARTITION] WHEN")]


def add_commands(application: typer.Typer) -> None:
    """Register the commands of this module."""
    for command, example in (
        (pause, "longwatch pause night B1_glaive"),
        (drain, "longwatch drain night"),
        (resume, "longwatch resume night"),
        (stop, "longwatch stop night"),
        (retry, "longwatch retry night B1_glaive --reason 'HTTP 500'"),
    ):
        application.command(epilog=epilog(example))(command)
    for limit, example in (
        (concurrency, "longwatch concurrency night B1_glaive 64"),
        (budget, "longwatch budget night B1_glaive 12M"),
        (goal, "longwatch goal night B1_glaive 7000"),
        (deadline, "longwatch deadline night 08:00"),
    ):
        # else "-5" would be told to be no option, not to be no limit
        settings = {"ignore_unknown_options": True}
        application.command(epilog=epilog(example), context_settings=settings)(limit)


def pause(words: Targets = None, home: HomeOption = None) -> int:
    """Stop sending and keep what was made; without partitions, the run as a whole."""
    return _give(home, words, lambda names: PauseOrder(partitions=tuple(names)))


def drain(words: Targets = None, home: HomeOption = None) -> int:
    """Send nothing new and let what runs end, then pause; without partitions, all of them."""
    return _give(home, words, lambda names: DrainOrder(partitions=tuple(names)))


def resume(words: Targets = None, home: HomeOption = None) -> int:
    """Go on after pause, drain or stop; without partitions, the run as a whole."""
    return _give(home, words, lambda names: ResumeOrder(partitions=tuple(names)))


def stop(
    words: OneRun = None,
    finish: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option("--finish", envvar=f"{PREFIX}FINISH", help="Let what runs end first."),
    ] = False,
    home: HomeOption = None,
) -> int:
    """End the run, keeping what was made, half answers too; resume goes on with it."""

    def order(rest: list[str]) -> RunOrder:
        if rest:
            raise InputError(f"stop ends a whole run, not {rest[0]}", hint="Pause the partition")
        return StopOrder(finish=finish)

    return _give(home, words, order)


def retry(
    words: OneTarget = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", envvar=f"{PREFIX}REASON", help="Only if the reason contains it."),
    ] = None,
    states: Annotated[
        list[RetryState] | None,
        typer.Option("--state", envvar=f"{PREFIX}STATE", help="Which samples; default: failed."),
    ] = None,
    home: HomeOption = None,
) -> int:
    """Try samples again; a finished run goes on with them."""

    def order(rest: list[str]) -> RunOrder:
        _at_most(rest, 1, "retry [RUN] [PARTITION]")
        chosen = states or [RetryState.FAILED]
        return RetryOrder(
            partition=rest[0] if rest else None,
            reason=reason,
            states=tuple(state.value for state in chosen),
        )

    return _give(home, words, order)


def concurrency(words: ValueWords, home: HomeOption = None) -> int:
    """Set how many requests of a partition run at once; auto: its share of the class again."""
    names, value = _value_last(words)
    n = None if value in (_SHARED, _NONE) else _whole(value, "concurrency")

    def order(rest: list[str]) -> RunOrder:
        return ConcurrencyOrder(partition=_partition(rest, "concurrency"), requests=n)

    return _give(home, names, order)


def budget(words: BudgetWords, home: HomeOption = None) -> int:
    """Set the output tokens of a partition, or of the run, such as 12M; none: no budget."""
    names, value = _value_last(words)
    try:
        tokens = None if value == _NONE else parse_tokens(value)
    except ValueError as error:
        least = "a budget is at least 1 token: " if value.startswith("-") else ""
        raise InputError(f"{least}{error}") from error

    def order(rest: list[str]) -> RunOrder:
        _at_most(rest, 1, "budget [RUN] [PARTITION] TOKENS")
        return BudgetOrder(partition=rest[0] if rest else None, tokens=tokens)

    return _give(home, names, order)


def goal(words: ValueWords, home: HomeOption = None) -> int:
    """Set how many answers are wanted of a partition; none: as many as there are prompts."""
    names, value = _value_last(words)
    n = None if value == _NONE else _whole(value, "goal")

    def order(rest: list[str]) -> RunOrder:
        return GoalOrder(partition=_partition(rest, "goal"), samples=n)

    return _give(home, names, order)


def deadline(words: DeadlineWords, home: HomeOption = None) -> int:
    """Set when a partition pauses or the run stops: 08:00, 2026-12-01T08:00+01:00, +6h or none.

    What is half-written then is kept. Moved or taken away later, it goes on.
    """
    names, value = _value_last(words)
    if problem := deadline_problem(value):
        raise InputError(f"deadline {problem}")

    def order(rest: list[str]) -> RunOrder:
        _at_most(rest, 1, "deadline [RUN] [PARTITION] WHEN")
        return DeadlineOrder(
            partition=rest[0] if rest else None, deadline=None if value == NONE else value
        )

    return _give(home, names, order)


def _value_last(words: list[str]) -> tuple[list[str], str]:
    """Return the names and the value; what looks like an option came this far and is none."""
    if unknown := next((word for word in words if word.startswith("--")), None):
        raise InputError(f"there is no option {unknown}", hint="See the command's --help")
    return words[:-1], words[-1]


def _give(
    home: Path | None, words: list[str] | None, make_order: Callable[[list[str]], RunOrder]
) -> int:
    with _bad_values_as_input():
        given = give_order(load_settings(home=home), words or [], make_order, SystemClock())
    say(given.sentence)
    if not given.by_service:
        say("No service runs on this home: it takes effect when the run next starts.")
    return EXIT_OK


@contextmanager
def _bad_values_as_input() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        told = "; ".join(f"{one['input']!r}: {plain_words(one['msg'])}" for one in error.errors())
        raise InputError(told) from error


def _whole(value: str, what: str) -> int:
    n = typed_whole(value)
    if n is None or n < 1:
        raise InputError(
            f'{what} "{value[:40]}" is not a whole number of at least 1',
            hint="Write for example 64",
        )
    return n


def _partition(rest: list[str], what: str) -> str:
    if len(rest) != 1:
        raise InputError(f"{what} needs one partition", hint=f"{what} [RUN] PARTITION VALUE")
    return rest[0]


def _at_most(rest: list[str], n: int, form: str) -> None:
    if len(rest) > n:
        raise InputError(f"there are too many names: {' '.join(rest)}", hint=form)
