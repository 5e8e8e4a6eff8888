"""One line of training data: a prompt's ids, an answer's, and which of them are supervised.

Owns the keys, their order and their types. Pure. Invariant: a key has the same type in every line,
so there is no null and no list but of ids: the JSON reader of `datasets` takes the types from the
beginning of the first file, where a column of nulls, or of empty lists, is one of no type, and
fails at the first value. What is not known is NONE, flags are one text with commas.

SpecForge (`data.prompts_path`) and speculators (`prepare-data`) take `input_ids` and `loss_mask`
and pass over the rest. `loss_mask` is 0 on the prompt and 1 on the whole answer, the token that
ended it included; `reasoning_end` is the index in `input_ids` of the mark that closes reasoning.
Free-form facts are JSON in a text (`metadata`): loaders fail where the type inside changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from app.core.reasoning import Reasoning
from app.export.choosing import Finish

UNCLOSED = "reasoning_unclosed"
NONE = -1  # no id and no place


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What one record says. `key` is unique in its partition, `native` the prompt's own id."""

    partition: str
    key: str
    native: str
    source: str
    prompt: Sequence[int]
    answer: Sequence[int]
    finish: Finish
    stop_id: int | None
    is_regenerated: bool
    reasoning: Reasoning
    prompt_sha256: str
    flags: tuple[str, ...]
    gen_id: str
    metadata: dict[str, object]
    text: str | None = None
    before: Sequence[Mapping[str, object]] | None = None  # the prompt as messages, where asked for

    @property
    def n_tokens(self) -> int:
        return len(self.prompt) + len(self.answer)

    @property
    def all_flags(self) -> list[str]:
        return [*self.flags, UNCLOSED] if self.reasoning.is_unclosed else list(self.flags)

    @property
    def reasoning_end(self) -> int | None:
        end = self.reasoning.end
        return None if end is None or end == self.reasoning.resume else len(self.prompt) + end


def fields_of(example: Example) -> dict[str, object]:
    """Return keys and values in their order, but for ids and mask, which stand behind `source`."""
    return {
        "prompt_len": len(example.prompt),
        "seq_len": example.n_tokens,
        "n_supervised": len(example.answer),
        "finish_reason": example.finish.value,
        "stop_matched": NONE if example.stop_id is None else example.stop_id,
        "origin": "regenerated" if example.is_regenerated else "existing",
        "thinking": example.reasoning.is_thinking,
        "reasoning_end": NONE if example.reasoning_end is None else example.reasoning_end,
        "prompt_sha256": example.prompt_sha256,
        "flags": ",".join(example.all_flags),
        "gen_id": example.gen_id,
        "metadata": orjson.dumps(example.metadata).decode(),
    }


def heads_of(example: Example) -> dict[str, object]:
    """Return the keys before the ids."""
    return {
        "id": f"{example.partition}/{example.key}",
        "primary_id": f"{example.partition}/{example.native}",
        "partition": example.partition,
        "source": example.source,
    }


def line_of(example: Example, *, with_text: bool = False) -> bytes:
    """Return the record as one line of compact JSON."""
    mask = b"[" + b"0," * len(example.prompt) + b"1," * len(example.answer)
    fields: dict[str, object] = {
        **heads_of(example),
        "input_ids": [*example.prompt, *example.answer],
        "loss_mask": orjson.Fragment(mask[:-1] + b"]"),
        **fields_of(example),
    }
    if with_text:
        fields["text"] = example.text or ""
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
