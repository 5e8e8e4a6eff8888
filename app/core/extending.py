"""Whether a truncated answer can go on under a higher limit, and from which token.

Pure. The rules of continuing are `continuation.py`; here is what an ended answer adds to them: the
limit that cut it may not have been the partition's, its server's context may be full, and its last
token may be the one that ends an answer, because a server looks at the length first.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.core.continuation import may_continue
from app.core.format import plural
from app.core.outcome import FLAG_CLIPPED
from app.core.states import SampleState
from app.core.types import Claim, Keep, Outcome, Segment


class Stay(StrEnum):
    """Why a truncated answer stays as it is; the words follow a count."""

    OWN_LIMIT = "cut by a limit of the prompt's own"
    THIS_LIMIT = "cut at this very limit"
    CONTEXT = "with no room left in the server's context"
    OTHER_SETTINGS = "made under other settings"
    STATEFUL = "made with a penalty or a grammar, which cannot be continued"
    UNREADABLE = "whose line is not what the ledger says"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """What the ledger says of a truncated answer; `own_limit_tokens` is None: the partition's."""

    prompt_tokens: int
    output_tokens: int
    own_limit_tokens: int | None
    flags: Sequence[str]
    sampling: Mapping[str, object]


def why_it_stays(
    answer: Truncated, limit_tokens: int, usable_tokens: int | None, *, rejects: bool = False
) -> Stay | None:
    """Return why an answer cannot go on up to the partition's limit, None if it can.

    `usable_tokens`: what prompt and answer may take together on every server, None if none said.
    `rejects`: the whole limit must fit there, or the sample keeps the limit that it has.
    """
    room = None if usable_tokens is None else usable_tokens - answer.prompt_tokens
    least = limit_tokens if rejects else answer.output_tokens + 1
    if FLAG_CLIPPED in answer.flags or (room is not None and room < least):
        return Stay.CONTEXT
    if answer.output_tokens >= (answer.own_limit_tokens or limit_tokens):
        own = answer.own_limit_tokens
        return Stay.THIS_LIMIT if own is None or own >= limit_tokens else Stay.OWN_LIMIT
    return None if may_continue(answer.sampling) else Stay.STATEFUL


def goes_on(
    outcome: Outcome, claim: Claim, limit_tokens: int, sampling: Mapping[str, object]
) -> bool:
    """Return whether an answer that has just ended was cut by a limit that is higher by now."""
    return (
        isinstance(outcome, Keep)
        and outcome.state is SampleState.TRUNCATED
        and FLAG_CLIPPED not in outcome.flags
        and not claim.has_own_limit
        and claim.max_new_tokens < limit_tokens
        and may_continue({**sampling, **claim.sampling})
    )


def is_of(segments: Sequence[Segment], gen_id: str) -> bool:
    """Return whether every part of an answer was made under these settings."""
    return bool(segments) and all(each.gen_id == gen_id for each in segments)


def tokens_to_hold(
    output_ids: Sequence[int], end_ids: Collection[int] | None, sampling: Mapping[str, object]
) -> int:
    """Return how many tokens of a truncated answer its continuation may build on.

    Nothing sensible follows the token that ends an answer, so it is not sent: made again, it ends
    the answer. `end_ids` None: nobody has seen yet which token that is, so no last one is trusted.

    >>> tokens_to_hold([5, 6, 7], {2}, {}), tokens_to_hold([5, 6, 2], {2}, {})
    (3, 2)
    >>> tokens_to_hold([5, 6, 7], None, {}), tokens_to_hold([5, 6, 2], {2}, {"ignore_eos": True})
    (2, 3)
    """
    if not output_ids or sampling.get("ignore_eos") is True:
        return len(output_ids)
    ends = end_ids is None or output_ids[-1] in end_ids
    return len(output_ids) - int(ends)


def stays_in_words(stays: Mapping[Stay, int]) -> str:
    """Return how many answers stay as they are, and why; "" if none does.

    >>> stays_in_words({Stay.UNREADABLE: 1, Stay.OTHER_SETTINGS: 1})
    '2 answers stay: 1 made under other settings, 1 whose line is not what the ledger says'
    """
    counted = Counter(stays)
    if not counted.total():
        return ""
    parts = ", ".join(f"{counted[each]:,} {each}" for each in Stay if counted[each])
    verb = "stays" if counted.total() == 1 else "stay"
    return f"{plural(counted.total(), 'answer')} {verb}: {parts}"
