"""Why samples failed, as people sort it: which reasons are one, which will come again, which meant.

Owns the form in which reasons that differ only in numbers are the same, and the list of reasons
that a retry cannot help. Pure. Invariant: a retry and the page that offers it ask the same
`Choice`, so what was shown is what is moved.
"""

import re
from dataclasses import dataclass
from hashlib import sha256

from app.core.states import SampleState

FAILURES = (
    SampleState.FAILED,
    SampleState.REJECTED,
    SampleState.EMPTY,
    SampleState.SUSPECT,
)
# Numbers and hex, but not the status of an answer: 400 and 503 are two different troubles.
_VARYING = re.compile(
    r"0x[0-9a-f]+"
    r"|\b(?=[a-f-]*[0-9])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b"
    r'|(?<!the server answered )(?<!"status_code":)(?<![0-9])[0-9]+(?:[.,][0-9]+)*',
    re.IGNORECASE,
)
_REFUSED = re.compile(r"the server answered (400|413|422)\b|aborted by the server")
_TOO_LONG = re.compile(
    r"context|too long|does not fit|max(?:imum)?[ _]*(?:input|prompt|total)? *(?:length|tokens)",
    re.IGNORECASE,
)
_DEADLY = re.compile(r"the server died \d+ times under this sample")


def form_of(reason: str | None) -> str:
    """Return a reason with `#` for every number and id in it.

    >>> form_of("the prompt has 40,123 tokens, the server takes at most 32,767")
    'the prompt has # tokens, the server takes at most #'
    >>> form_of("the server answered 500: request 7f3a9c01bd of 0x7ffe failed at 12:30")
    'the server answered 500: request # of # failed at #:#'
    >>> form_of(None)
    ''
    """
    return _VARYING.sub("#", " ".join((reason or "").split()))


def group_of(state: SampleState, reason: str | None) -> str:
    """Return the short name of the group that a failure belongs to: its state, its form."""
    return sha256(f"{state}\n{form_of(reason)}".encode("utf-8", "replace")).hexdigest()[:12]


def lasting(state: SampleState, reason: str | None) -> str | None:
    """Return why another attempt ends the same way while nothing else is changed, or None.

    >>> lasting(SampleState.FAILED, "the server answered 400: longer than the context of 32768")
    'they exceed the context'
    >>> lasting(SampleState.FAILED, "the server answered 422: bad regex")
    'the server refuses the request itself'
    >>> lasting(SampleState.FAILED, "given up after 3 attempts: the server answered 500: boom")
    """
    said = reason or ""
    if state is SampleState.REJECTED:
        return "they were rejected before they were sent"
    if state is not SampleState.FAILED:
        return None  # a model may answer otherwise the next time
    if _DEADLY.search(said):
        return "the server died under each attempt"
    is_refused = said.startswith(("the server answered", "aborted")) and _REFUSED.match(said)
    if is_refused and _TOO_LONG.search(said):
        return "they exceed the context"
    return "the server refuses the request itself" if is_refused else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which failures are meant. Nothing set: all of them.

    `words`: the reason, or its form, contains them, in whatever case. `group`: of that
    group alone. `is_sparing`: not those whose reason is lasting.
    """

    partition: str = ""
    state: SampleState | None = None
    words: str = ""
    group: str = ""
    is_sparing: bool = False

    def has_state(self, state: SampleState) -> bool:
        return self.state in (None, state)

    def takes(self, state: SampleState, reason: str | None) -> bool:
        """Return whether a failure with this reason is meant, its partition apart.

        >>> Choice(words="BOOM").takes(SampleState.FAILED, "500 boom")
        True
        >>> Choice(is_sparing=True).takes(SampleState.REJECTED, "broken JSON")
        False
        """
        words = self.words.casefold()
        said = (reason or "").casefold()
        return (
            self.has_state(state)
            and (words in said or words in form_of(said))
            and self.group in ("", group_of(state, reason))
            and not (self.is_sparing and lasting(state, reason))
        )
