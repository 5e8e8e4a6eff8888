"""What adopting found and did, in lines for people. Pure."""

from collections.abc import Iterator

from app.adopting.looking import Looked
from app.adopting.taking import Taken
from app.core import format as words
from app.core.adopting import Left

_FAULTS = [each for each in Left if each not in (Left.ANSWERED, Left.DOUBLED)]


def told_look(looked: Looked) -> Iterator[str]:
    """Say what a file holds, what of it is left and why, the first of each kind with its line."""
    partition = looked.source.partition
    n = len(looked.chosen)
    yield f"{partition.name}: {looked.source.path}"
    yield (
        f"  {words.plural(looked.n_lines, 'line')} read, {words.plural(n, 'answer')} for"
        f" {partition.counts.total:,} samples"
    )
    if looked.left[Left.DOUBLED]:
        doubled = words.plural(looked.left[Left.DOUBLED], "line")
        yield f"  {doubled} of a sample that a later line answers too: the last one counts"
    if looked.left[Left.ANSWERED]:
        yield f"  {words.plural(looked.left[Left.ANSWERED], 'line')} {Left.ANSWERED}: they stay"
    for why in _FAULTS:
        if looked.left[why]:
            yield f"  {words.plural(looked.left[why], 'line')} {why}, left:"
            yield from (f"    {each}" for each in looked.shown[why])
    if looked.n_texts:
        yield (
            f"  WARNING: {words.plural(looked.n_texts, 'answer')} only as text: the server makes"
            " their ids, which need not be those that the model chose (flag adopted_text)"
        )
    if looked.n_unsaid:
        yield (
            f"  {words.plural(looked.n_unsaid, 'answer')} without a finish reason: as long as"
            " max_new_tokens is truncated, shorter is ok"
        )
    if looked.n_uncompared:
        unsaid = words.plural(looked.n_uncompared, "answer")
        yield f"  {unsaid} without a prompt to compare: the id alone says whose they are"


def told_taken(taken: Taken) -> Iterator[str]:
    """Say what was taken over, and what was left after all."""
    name = taken.looked.source.partition.name
    tokens = words.tokens(taken.n_tokens)
    yield f"{name}: took over {words.plural(taken.n, 'answer')}, {tokens} tokens"
    for why, n in taken.left.items():
        yield f"  {words.plural(n, 'text')} {why}, left; they are generated"
