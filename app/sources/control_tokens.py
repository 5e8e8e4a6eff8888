"""Special tokens that stand literally in the text of a dataset.

Owns what counts as one. Kimi's tokenizer encodes text with every special token allowed, so
`<|im_end|>` typed by a user ends the turn, and `[EOS]` becomes one id. The first kind is rejected;
the second stands in ordinary text about tokenizers, so it is kept and counted.

Every step looks at a bounded piece of text, so the time is linear in its length whatever stands in
it. Single characters are looked for first: that is twenty times as fast as anything longer, and
most texts are done with at that.
"""

import re

MAX_NAME_CHARACTERS = 64
_OPENS, _CLOSES = "<|", "|>"
_BRACKET_SPECIAL = re.compile(r"\[(?:PAD|EOS|BOS|UNK|EOT)\]")
_NOT_IN_NAMES = frozenset("<>|\"\\'`")  # code has these: F# pipes, Haskell's <|>


def control_token(text: str) -> str | None:
    r"""Return the first `<|name|>` of the text; a name has 1 to 64 characters, none of them blank.

    >>> control_token("what does <|im_end|> mean?")
    '<|im_end|>'
    >>> control_token("xs <| f x |> g") is None
    True
    """
    start = text.find(_OPENS) if "|" in text else -1
    while start >= 0:
        name_at = start + len(_OPENS)
        end = text.find(_CLOSES, name_at, name_at + MAX_NAME_CHARACTERS + len(_CLOSES))
        if end > name_at and _is_name(text[name_at:end]):
            return text[start : end + len(_CLOSES)]
        start = text.find(_OPENS, name_at)
    return None


def has_bracket_special(text: str) -> bool:
    """Whether one of the words in square brackets stands in the text that Kimi gives an own id."""
    return "[" in text and _BRACKET_SPECIAL.search(text) is not None


def _is_name(name: str) -> bool:
    return _NOT_IN_NAMES.isdisjoint(name) and name.split() == [name]
