"""The reasoning that a dataset writes in front of an answer, as `<think>…</think>`.

Owns where it begins and ends. Only blocks at the beginning count: an answer may well write about
the tags. A block that is not closed is reasoning to the end, so nothing is left of the answer.
"""

_OPENS, _CLOSES = "<think>", "</think>"
_LINE_ENDS = "\r\n"


def split_thinking(content: str) -> tuple[str, str]:
    r"""Return the reasoning, "" without any, and the answer; line ends at the tags belong to them.

    >>> split_thinking("<think>\n7*13\n</think>\n\nNo.")
    ('7*13', 'No.')
    >>> split_thinking("No.")
    ('', 'No.')
    """
    rest = content.lstrip() if content[:1].isspace() else content
    if not rest.startswith(_OPENS):
        return "", content
    thoughts = []
    at = 0
    while rest.startswith(_OPENS, at):
        begin = at + len(_OPENS)
        end = rest.find(_CLOSES, begin)
        if end < 0:
            thoughts.append(rest[begin:])
            at = len(rest)
            break
        thoughts.append(rest[begin:end])
        at = end + len(_CLOSES)
        while rest[at : at + 1] in ("\r", "\n"):
            at += 1
    stripped = [thought.strip(_LINE_ENDS) for thought in thoughts]
    return "\n\n".join(thought for thought in stripped if thought.strip()), rest[at:]
