"""Some records with their ids, on their way into token file and ledger.

Owns the order append, sync, record, and which samples of a record can be sent. Invariant: a batch
is recorded whole or not at all, so it may be written again after any failure.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.prompt_limits import PromptLimits, answer_limit
from app.core.spec import RunSpec
from app.core.views import PartitionView
from app.files.prompts import Prompt
from app.files.tokens import TokenFile
from app.ledger import intake_rows, runs
from app.ledger.db import Ledger
from app.ledger.intake_rows import Refused, Tokenized
from app.prompt_tokens import Unusable
from app.tokenizing.records import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A record with its ids, or why it has none."""

    group: Group
    found: "array[int] | Unusable"


class BatchWriter:
    """Writes the batches of one partition; used from one thread at a time."""

    def __init__(
        self, ledger: Ledger, partition: PartitionView, spec: RunSpec, token_path: Path
    ) -> None:
        self._ledger = ledger
        self._partition = partition
        self._spec = spec
        self._tokens = TokenFile(token_path)
        self._known_tokens = 0
        self.n_tokenized = 0
        self.n_refused = 0

    def begin(self) -> None:
        """Cut what the ledger does not know of now; StorageError if the file is shorter than that.

        The ledger is asked here: the view may be older than the last batch of a task before.
        """
        self._known_tokens = runs.get_partition(self._ledger, self._partition.id).token_file_tokens
        self._tokens.cut(self._known_tokens)

    def close(self) -> None:
        self._tokens.close()

    def write(self, answers: Sequence[Answer], limits: PromptLimits) -> None:
        """Append, sync, record."""
        self._partition = runs.get_partition(self._ledger, self._partition.id)  # a limit may rise
        limited = [(answer, self._limit(answer, limits)) for answer in answers]
        offsets = self._append([one.found for one, limit in limited if isinstance(limit, int)])
        tokenized: list[Tokenized] = []
        refused: list[Refused] = []
        for answer, limit in limited:
            if isinstance(limit, int):
                tokenized += self._tokenized(answer, limit, next(offsets))
            else:
                refused += _refused(answer, limit)
        end = self._tokens.size_tokens
        intake_rows.record_tokens(
            self._ledger,
            self._partition.id,
            tokenized,
            refused,
            end,
            cap_tokens=self._partition.max_new_tokens,
        )
        self._known_tokens = end
        self.n_tokenized += len(tokenized)
        self.n_refused += len(refused)

    def _append(self, prompts: Sequence["array[int] | Unusable"]) -> Iterator[int]:
        """Return where each prompt begins, after all of them are on the disk."""
        if self._tokens.size_tokens != self._known_tokens:
            self._tokens.cut(self._known_tokens)  # an earlier try was not recorded
        ids = [each for each in prompts if not isinstance(each, Unusable)]
        if not ids:
            return iter(())
        offsets = self._tokens.append(ids)
        self._tokens.sync()
        return iter(offsets)

    def _limit(self, answer: Answer, limits: PromptLimits) -> int | str:
        """Return how long an answer to this record may be, or why it cannot be sent."""
        if isinstance(answer.found, Unusable):
            return answer.found.reason
        prompt = answer.group.prompt
        least = _whole(prompt, "min_new_tokens") or self._spec.sampling.get("min_new_tokens")
        return answer_limit(
            limits,
            len(answer.found),
            _whole(prompt, "max_new_tokens") or self._partition.max_new_tokens,
            least if isinstance(least, int) and least > 1 else 1,
        )

    def _tokenized(self, answer: Answer, limit: int, offset: int) -> list[Tokenized]:
        """Return the record's samples, which share one range of ids.

        The limit is stored only where it is not the partition's, which may be changed later.
        """
        is_own = limit != self._partition.max_new_tokens
        return [
            Tokenized(
                sample_id=sample.sample_id,
                prompt_tokens=len(answer.found) if not isinstance(answer.found, Unusable) else 0,
                token_offset=offset,
                max_new_tokens=limit if is_own or sample.max_new_tokens is not None else None,
                prompt_sha256=answer.group.prompt.prompt_sha256,
                parent_id=sample.parent_id,
            )
            for sample in answer.group.samples
        ]


def _refused(answer: Answer, reason: str) -> list[Refused]:
    found = answer.found
    counted = found.prompt_tokens if isinstance(found, Unusable) else len(found)
    return [
        Refused(
            sample_id=sample.sample_id,
            reason=reason,
            prompt_tokens=counted,
            parent_id=sample.parent_id,
        )
        for sample in answer.group.samples
    ]


def _whole(prompt: Prompt, name: str) -> int | None:
    value = prompt.sampling.get(name)
    return value if isinstance(value, int) else None
