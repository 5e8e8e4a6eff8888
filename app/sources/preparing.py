"""One source to the draft of one partition: read, extract, measure, drop what repeats, sample.

Owns the order of these steps and what is written for a row. Invariants: every row ends in exactly
one place, as a record or as a line of `skipped.jsonl`; the bytes depend on the source, the spec
and nothing else; memory does not grow with the text, only by some bytes for each row.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import orjson

from app.errors import InputError
from app.sources.choosing import FirstSeen, Sample, UniqueIds
from app.sources.contract import Gives, Message, Mode, Recipe, Row, SkippedError, SkipReason
from app.sources.conversations import Extracted, extracted
from app.sources.finding import SourceFile
from app.sources.known import recognised
from app.sources.publishing import records_file
from app.sources.readers import Position, problem_of
from app.sources.rows import LOOK_ROWS, Placed, recipe_of, rows_of
from app.sources.spec import SourceSpec
from app.sources.tally import Tally, example_of
from app.sources.thinning import Goes, thin
from app.sources.writing import Draft, Skip, digest_of, drafting, place_line, record_line

_TOLD_EVERY_ROWS = 2_000
_ENDLESS = 1 << 62
# what a recipe must not raise; an OSError is of writing, and not its fault
_BUGS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

Progress = Callable[[int, int], None]  # rows, and bytes of the files as they lie on the disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One source to prepare: everything that a process of its own must be told."""

    source: SourceSpec
    files: tuple[SourceFile, ...]
    draft: Path
    seed: int = 0
    is_compared: bool = False  # with the other partitions, afterwards

    @property
    def n_bytes(self) -> int:
        """The size of the files as they lie on the disk; 0 for a dataset of the hub."""
        return sum(file.path.stat().st_size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What became of a source: its draft is complete, nothing has its place yet."""

    recipe: str
    is_recognised: bool
    mode: Mode
    gives: Gives
    tally: Tally


class RepeatsError(SkippedError):
    """The row asks what an earlier one asks already."""

    def __init__(self, of: int, detail: str) -> None:
        super().__init__(SkipReason.DUPLICATE, detail)
        self.of = of


def prepare(job: Job, on_progress: Progress) -> Prepared:
    """Write the draft of a source's partition; InputError if it cannot be read to its end."""
    source, position = job.source, Position()
    rows = rows_of(source, job.files, position)
    first = list(islice(rows, LOOK_ROWS))
    recipe = recipe_of(source, (row for _, (_, row) in first))
    work = Partition(source, recipe, job.seed, is_compared=job.is_compared)
    n_bytes = job.n_bytes

    def told(n_rows: int) -> None:
        done_bytes = position.tell()
        if done_bytes:
            work.expect(n_rows * n_bytes // done_bytes)
        on_progress(n_rows, done_bytes)

    records = records_file(recipe.gives)
    with drafting(job.draft, records) as draft:
        work.take_all(chain(first, rows), draft, told)
    tally = work.tally
    if work.sample is not None:
        goes = Goes(SkipReason.NOT_SAMPLED)
        verdicts = (None if taken else goes for taken in work.sample.takes())
        tally = thin(job.draft, records, verdicts, tally)
    return Prepared(
        recipe=recipe.name,
        is_recognised=source.recipe is None and source.columns is None,
        mode=work.mode,
        gives=recipe.gives,
        tally=tally,
    )


class Partition:
    """The rows of one source on their way into a draft."""

    def __init__(
        self, source: SourceSpec, recipe: Recipe, seed: int, *, is_compared: bool = False
    ) -> None:
        self.mode = source.mode or recipe.mode
        self.tally = Tally()
        self.sample = None if source.rows is None else Sample(seed, source.name, source.rows)
        self._source, self._recipe, self._is_compared = source, recipe, is_compared
        self._seen, self._ids = FirstSeen(), UniqueIds()
        self._shortest, self._longest = source.min_characters, source.max_characters or _ENDLESS
        self._is_answers = recipe.gives is Gives.ANSWERS
        self._end = b',"turns":"all"}\n' if self._is_turn_by_turn() else b"}\n"

    def _is_turn_by_turn(self) -> bool:
        return self.mode is Mode.ALL_TURNS and not self._is_answers

    def expect(self, n_rows: int) -> None:
        """Make room for so many rows."""
        self._seen.expect(n_rows)
        self._ids.expect(n_rows)

    def take_all(
        self, rows: Iterator[Placed], draft: Draft, told: Callable[[int], None] = lambda _: None
    ) -> None:
        """Give every row its place in the draft, in order."""
        recipe, mode, keep_tokens = self._recipe, self.mode, self._source.keep_control_tokens
        n_row = -1
        for n_row, (label, (line, row)) in enumerate(rows):
            try:
                if type(row) is not dict:
                    raise SkippedError(SkipReason.UNREADABLE, problem_of(row))  # noqa: TRY301 - the one way to skip
                try:
                    one = extracted(recipe, row, mode, keep_control_tokens=keep_tokens)
                except SkippedError as skip:
                    one = self._by_another_recipe(row, skip)
                self._take(one, n_row, label, line, draft)
            except SkippedError as skip:
                of = skip.of if isinstance(skip, RepeatsError) else None
                file = orjson.loads(label)
                draft.skip(Skip(n_row, file, line, skip.reason, skip.detail, of))
                self.tally.skip(skip.reason)
            except _BUGS as error:
                raise InputError(
                    f"{label}, line {line} cannot be prepared by the recipe {recipe.name}:"
                    f" {type(error).__name__}: {error}",
                    hint="report it with that line; another recipe may read it",
                ) from error
            if n_row % _TOLD_EVERY_ROWS == _TOLD_EVERY_ROWS - 1:
                told(n_row + 1)
        told(n_row + 1)

    def _by_another_recipe(self, row: Row, skip: SkippedError) -> Extracted:
        """Return what a row of another shape asks (inp-07); else raise why it was skipped.

        Only where the recipe was recognised, and for a row without its columns.
        """
        recipe = self._recipe
        if self._source.recipe or self._source.columns or recipe.columns <= row.keys():
            raise skip
        with suppress(InputError):
            other = recognised(row, row)
            if other.gives is recipe.gives:
                one = extracted(
                    other, row, self.mode, keep_control_tokens=self._source.keep_control_tokens
                )
                self.tally.other_recipes[other.name] = (
                    self.tally.other_recipes.get(other.name, 0) + 1
                )
                return one
        raise skip

    def _take(self, one: Extracted, n_row: int, label: str, line: int, draft: Draft) -> None:
        """Write a record, or raise why it is none."""
        messages, tools, native_id, flags, prompt_upto = one
        n_characters = self._length(messages)
        try:
            said = orjson.dumps(messages)
            functions = orjson.dumps(tools) if tools else b""
        except TypeError as error:
            detail = f"cannot be written as JSON: {error}"
            raise SkippedError(SkipReason.BAD_SCHEMA, detail) from error
        if self._recipe.is_one_per_id and native_id is not None:
            of, what = self._seen.first(hash(native_id), n_row), "the same id"
        else:
            content = (said, functions) if functions else said
            of, what = self._seen.first(hash(content), n_row), "the same messages and tools"
        if of is not None:
            raise RepeatsError(of, f"{what} as row {of}")
        digest = digest_of(said, functions) if self._is_compared or native_id is None else ""
        key = self._ids.unique(native_id or digest)
        end = self._end
        if self._is_answers:
            end = b'%b,"prompt_upto":%d}\n' % (
                b"" if functions else b',"tools":null',
                prompt_upto or 0,
            )
        draft.records.write(record_line(key, said, functions, end))
        draft.kept.write(place_line((n_row, label, line), n_characters, digest, flags))
        self.tally.keep(n_characters, flags)
        if self.sample is not None:
            self.sample.offer(n_row)
        elif self.tally.wants_example():
            self.tally.show(*example_of({"id": key, "messages": messages}))

    def _length(self, messages: list[Message]) -> int:
        """Return the characters of all messages; raise if they are too few or too many."""
        n_characters = 0
        for message in messages:
            n_characters += len(message["content"] or "")  # type: ignore[arg-type]  # a text, or null beside calls
        if n_characters < self._shortest:
            detail = f"{n_characters:,} characters, min_characters is {self._shortest:,}"
            raise SkippedError(SkipReason.TOO_SHORT, detail)
        if n_characters > self._longest:
            detail = f"{n_characters:,} characters, max_characters is {self._longest:,}"
            raise SkippedError(SkipReason.TOO_LONG, detail)
        return n_characters
