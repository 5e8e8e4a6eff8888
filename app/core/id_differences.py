"""Where two lists of token ids part, as a sentence. Pure."""

from collections.abc import Sequence

_AROUND = 4


def first_difference(ours: Sequence[int], theirs: Sequence[int]) -> int | None:
    """Return the first position at which they differ, None if they are the same.

    >>> first_difference([1, 2, 3], [1, 2]), first_difference([1], [1])
    (2, None)
    """
    shorter = min(len(ours), len(theirs))
    unlike = (at for at in range(shorter) if ours[at] != theirs[at])
    at = next(unlike, shorter)
    return None if at == len(ours) == len(theirs) else at


def neighbourhood(ids: Sequence[int], at: int) -> str:
    """Return the ids around a position, which is put into brackets.

    >>> neighbourhood([5, 6, 7], 1), neighbourhood([5, 6], 2)
    ('5 [6] 7', '5 6 [end]')
    """
    before = [str(one) for one in ids[max(0, at - _AROUND) : at]]
    here = f"[{ids[at]}]" if at < len(ids) else "[end]"
    behind = [str(one) for one in ids[at + 1 : at + 1 + _AROUND]]
    return " ".join(
        ["..."] * (at > _AROUND)
        + [*before, here, *behind]
        + ["..."] * (len(ids) > at + 1 + _AROUND)
    )
