"""What is told to somebody outside: one message per begin and end of a condition and per run's end.

Owns the shape of a message, its two forms (JSON that Slack-compatible webhooks take as it is, and
environment variables for a command) and when a failed delivery is tried again. Pure. Invariant: the
id of a message is that of its activity entry, so a receiver knows a repeated one.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.core.format import one_line, plural
from app.core.types import Counts

# how an entry of the activity begins that says that a condition is over
OVER = "over after "
MAX_TRIES = 10
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 10.0, 900.0
# a receiver may ask for more patience than ours, but not for ever
_LONGEST_ASKED_S = 3_600.0
_MAX_SENTENCE_CHARS = 1_500
_VARIABLE = "LONGWATCH_EVENT"


class MessageEvent(StrEnum):
    BEGIN = "begin"
    END = "end"
    FINISHED = "finished"
    STOPPED = "stopped"
    TEST = "test"


_MARKS = {
    MessageEvent.BEGIN: "⚠",
    MessageEvent.END: "✓",
    MessageEvent.FINISHED: "✓",
    MessageEvent.STOPPED: "■",
    MessageEvent.TEST: "•",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. `kind` is that of the condition, else the event's word.

    `since` is when what is told began, `at` when it was noticed; the same but for an end. `page` is
    the address of the run's page, "" where there is none.
    """

    id: str
    event: MessageEvent
    kind: str
    sentence: str
    at: datetime
    since: datetime
    run: str = ""
    run_id: int | None = None
    partition: str = ""
    page: str = ""

    @property
    def text(self) -> str:
        """Return the message as one line for people, the address of the page below it."""
        told = self.sentence if self.is_whole else f"{self.kind}: {self.sentence}"
        where = ", ".join(name for name in (self.run, self.partition) if name)
        line = f"{_MARKS[self.event]} {where}: {told}" if where else f"{_MARKS[self.event]} {told}"
        return f"{line}\n{self.page}" if self.page else line

    @property
    def is_whole(self) -> bool:
        """Return whether the sentence needs no kind before it."""
        return self.event not in (MessageEvent.BEGIN, MessageEvent.END)


def to_json(message: Message) -> dict[str, object]:
    """Return the body of a webhook: `text` for chat programs, every field beside it.

    In `text` the three signs that such programs obey are escaped, so that no name of a run and no
    words of a server can call a whole channel or hide a link.
    """
    return {
        "text": _escaped(message.text),
        "id": message.id,
        "event": str(message.event),
        "kind": message.kind,
        "run": message.run,
        "run_id": message.run_id,
        "partition": message.partition,
        "at": message.at.isoformat(timespec="seconds"),
        "since": message.since.isoformat(timespec="seconds"),
        "sentence": message.sentence,
        "page": message.page,
    }


def to_environment(message: Message) -> dict[str, str]:
    """Return the fields as variables for a command: LONGWATCH_EVENT, …_KIND, …_RUN and so on."""
    fields = {name: value for name, value in to_json(message).items() if name != "event"}
    fields["text"] = message.text
    variables = {f"{_VARIABLE}_{name.upper()}": value for name, value in fields.items()}
    variables[_VARIABLE] = str(message.event)
    return {
        name: "" if value is None else str(value).replace("\0", "")
        for name, value in variables.items()
    }


def sentence_of(detail: str) -> str:
    r"""Return what an entry says as one line of bounded length.

    >>> sentence_of("over after 12 min"), sentence_of("No token\nfor 10 min.")
    ('over after 12 min', 'No token for 10 min.')
    """
    flat = one_line(detail)
    return flat if len(flat) <= _MAX_SENTENCE_CHARS else f"{flat[: _MAX_SENTENCE_CHARS - 1]}…"


def end_sentence(event: MessageEvent, counts: Counts, where: str, reason: str, run: str) -> str:
    """Return what is told of a run that is finished or stopped.

    >>> end_sentence(MessageEvent.FINISHED, Counts(ok=8, failed=1), "/out", "", "night")
    'finished: 8 answers, 1 failed sample; in /out'
    >>> end_sentence(MessageEvent.STOPPED, Counts(ok=8, pending=2), "/out", "no disk", "night")
    'stopped (no disk): 8 answers, 2 samples left; go on with: longwatch resume night'
    """
    because = f" ({sentence_of(reason)})" if reason else ""
    parts = [plural(counts.kept, "answer")]
    if counts.failed:
        parts.append(plural(counts.failed, "failed sample"))
    left = counts.pending + counts.running
    if left:
        parts.append(f"{plural(left, 'sample')} left")
    ends = (
        f"in {where}" if event is MessageEvent.FINISHED else f"go on with: longwatch resume {run}"
    )
    return f"{event}{because}: {', '.join(parts)}; {ends}"


def pause_s(n_tries: int, asked_s: float | None = None) -> float | None:
    """Return after how long a delivery that has failed so often is tried again; None: given up.

    Ten tries within about an hour; `asked_s` is what the receiver wants to be left alone for.

    >>> [pause_s(n) for n in (1, 2, 3, 7, 8, 9, 10)]
    [10.0, 20.0, 40.0, 640.0, 900.0, 900.0, None]
    >>> pause_s(1, 120.0), pause_s(5, 1.0), pause_s(1, 1e9)
    (120.0, 160.0, 3600.0)
    """
    if n_tries >= MAX_TRIES:
        return None
    own_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * float(2 ** (n_tries - 1)))
    return max(own_s, min(asked_s or 0.0, _LONGEST_ASKED_S))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
