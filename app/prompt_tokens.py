"""One prompt to its token ids, as the server makes them.

Owns what is asked of `/tokenize` for each kind of prompt and which ids may be sent at all. Waits
for nobody: a server that is away is the caller's `ServerAwayError`. Invariants: ids outside the
vocabulary never leave here (they end a real server); no prompt begins with its start token twice.

A chat is tokenized in one step, template and all, and has the start token once or not at all. For
a raw text the server is asked to put its start token before it; a text that brings its own would
then have two, and the added one is taken off again.
"""

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from app.core.prompt_limits import PromptLimits, strictest
from app.core.spec import RunSpec
from app.core.types import ServerFacts
from app.errors import ServerAwayError, ServerError
from app.files.prompts import Prompt

PIECE_CHARACTERS = 1 << 18
_MAX_WORDS = 300

Body = dict[str, object]


class Tokenize(Protocol):
    """Asks one server, or whichever of several answers."""

    async def __call__(self, body: Body, /) -> list[int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Why a prompt can never be sent; `prompt_tokens` where they were counted.

    `has_doubled_start`: the template is at fault, so every other prompt will be the same.
    """

    reason: str
    prompt_tokens: int | None = None
    has_doubled_start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTokens:
    """How the prompts of one run become ids."""

    tokenize: Tokenize
    limits: PromptLimits
    chat_template_kwargs: Mapping[str, object]
    start_id: int | None = None

    async def of(self, prompt: Prompt) -> "array[int] | Unusable":
        """Return the ids, or why there are none. ServerAwayError if the server says neither."""
        if prompt.input_ids is not None:
            return self._inside_vocabulary(prompt.input_ids)
        too_long = await self._obviously_too_long(prompt)
        if too_long is not None:
            return too_long
        try:
            ids = await self.tokenize(request_body(prompt, self.chat_template_kwargs))
        except ServerAwayError:
            raise
        except ServerError as error:
            return Unusable(reason=_refusal(prompt, error))
        return self._checked(prompt, ids)

    def _checked(self, prompt: Prompt, given: list[int]) -> "array[int] | Unusable":
        try:
            ids = array("I", given)
        except (TypeError, OverflowError):
            return Unusable(reason="the server's /tokenize did not return token ids")
        if not ids:
            return Unusable(reason="the prompt has no tokens")
        if self.start_id is not None and ids[:2] == array("I", [self.start_id, self.start_id]):
            if prompt.text is None:
                reason = f"the chat template writes the start token ({self.start_id}) twice"
                return Unusable(reason=reason, has_doubled_start=True)
            ids = ids[1:]
        return ids

    def _inside_vocabulary(self, ids: "array[int]") -> "array[int] | Unusable":
        size = self.limits.vocabulary_size
        if size is None:
            return Unusable(
                reason="input_ids need a known vocabulary; set vocabulary_size in [run]"
            )
        highest = max(ids)
        if highest >= size:
            return Unusable(reason=f"input_ids holds {highest}, the vocabulary has {size} ids")
        return ids

    async def _obviously_too_long(self, prompt: Prompt) -> Unusable | None:
        """Count a very long prompt in pieces, so that its ids are never held all at once."""
        n_characters = content_characters(prompt)
        usable = self.limits.usable_tokens
        if usable is None or n_characters <= PIECE_CHARACTERS:
            return None
        counted = n_pieces = 0
        for text in _texts(prompt):
            for start in range(0, len(text), PIECE_CHARACTERS):
                piece = text[start : start + PIECE_CHARACTERS]
                try:
                    ids = await self.tokenize({"prompt": piece, "add_special_tokens": False})
                except ServerAwayError:
                    raise
                except ServerError:
                    return None  # the whole may still pass; its own refusal counts
                counted += len(ids)
                n_pieces += 1
        # A cut through a word makes a few tokens more than the whole has there.
        if counted - 8 * n_pieces <= usable:
            return None
        reason = (
            f"the prompt has about {counted:,} tokens, which does not fit"
            f" the context of {self.limits.context_tokens or 0:,}"
        )
        return Unusable(reason=reason, prompt_tokens=counted)


def request_body(prompt: Prompt, chat_template_kwargs: Mapping[str, object]) -> Body:
    """Return what `/tokenize` is asked for a prompt that has no ids of its own."""
    if prompt.text is not None:
        return {"prompt": prompt.text, "add_special_tokens": True}
    body: Body = {"messages": prompt.messages}
    if prompt.tools:
        body["tools"] = prompt.tools
    if kwargs := {**chat_template_kwargs, **prompt.chat_template_kwargs}:
        body["chat_template_kwargs"] = kwargs
    return body


async def start_id_of(tokenize: Tokenize) -> int | None:
    """Return the id that the tokenizer puts before a text, None if it puts none or cannot say."""
    try:
        ids = await tokenize({"prompt": "", "add_special_tokens": True})
    except ServerAwayError:
        raise
    except ServerError:
        return None
    return next((one for one in islice(ids, 1) if isinstance(one, int)), None)


def vocabulary_size(spec: RunSpec, facts: ServerFacts) -> int | None:
    """Return how many ids the model knows: from the spec, the server, or the model's own folder."""
    if spec.vocabulary_size is not None:
        return spec.vocabulary_size
    return facts.vocabulary_size or _vocabulary_of_model(facts.model_path)


def limits_of(spec: RunSpec, facts: Sequence[ServerFacts]) -> PromptLimits:
    """Return what holds on every server, the vocabulary of spec or model included."""
    sizes = [vocabulary_size(spec, each) for each in facts]
    known = [size for size in sizes if size is not None]
    return replace(strictest(facts, spec.length_policy), vocabulary_size=min(known, default=None))


def _vocabulary_of_model(model_path: str | None) -> int | None:
    if not model_path:
        return None
    try:
        configuration = json.loads((Path(model_path) / "config.json").read_bytes())
    except (OSError, ValueError):
        return None  # another machine's folder, or the name of a model on a hub
    if not isinstance(configuration, dict):
        return None
    inner = configuration.get("text_config")
    places = [configuration, inner if isinstance(inner, dict) else {}]
    sizes = (place.get("vocab_size") for place in places)
    return next((size for size in sizes if type(size) is int), None)


def content_characters(prompt: Prompt) -> int:
    """Return how long a prompt is, roughly: the characters of its texts."""
    return sum(map(len, _texts(prompt)))


def _texts(prompt: Prompt) -> list[str]:
    if prompt.text is not None:
        return [prompt.text]
    if prompt.input_ids is not None:
        return []
    contents = (message.get("content") for message in prompt.messages or ())
    return [content for content in contents if isinstance(content, str)]


def _refusal(prompt: Prompt, error: ServerError) -> str:
    what = "the tokenizer" if prompt.text is not None else "the chat template"
    words = " ".join(error.message.split())
    shown = words if len(words) <= _MAX_WORDS else words[:_MAX_WORDS] + "..."
    return f"{what} refuses it: {shown}"
