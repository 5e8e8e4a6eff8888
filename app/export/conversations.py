"""The same answers as conversations, for trainers that take no token ids: only an approximation.

Owns what a conversation says: the prompt's messages, then the answer as one message with its
reasoning inline. Such trainers render a template of their own and encode the text again, so the
ids are not what the model was sent and made, and templates may drop reasoning or add a system turn.
Records without messages or without a text cannot be written so, and are counted.
"""

from pathlib import Path

import orjson

from app.export.parts import LineFile
from app.export.records import Example

_OPENS, _CLOSES = "<think>", "</think>"


class ConversationShard(LineFile):
    """`n_left_out`: records that are no conversation."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.n_left_out = 0

    def add(self, example: Example) -> None:
        said = answer_of(example)
        if said is None or example.before is None:
            self.n_left_out += 1
            return
        record = {
            "id": f"{example.partition}/{example.key}",
            "conversations": [*example.before, {"role": "assistant", "content": said}],
        }
        self.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))


def answer_of(example: Example) -> str | None:
    """Return the answer's text with its reasoning inline, the opening mark put back.

    A prompt may have opened the reasoning, and then the text begins inside it.
    """
    if example.text is None:
        return None
    begins_inside = example.reasoning.is_thinking and not example.text.startswith(_OPENS)
    if begins_inside and (_CLOSES in example.text or example.reasoning.is_unclosed):
        return f"{_OPENS}{example.text}"
    return example.text
