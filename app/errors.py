"""Every error that Longwatch raises on purpose.

    LongwatchError
    ├── InputError        a spec, flag, prompt file or address is wrong: mend it and start again
    ├── ConflictError     the thing is not in a state that allows this, or somebody else owns it
    │   └── ChangedError       it is not what whoever ordered had seen: somebody was quicker
    ├── NotFoundError     no such run, partition or sample
    ├── LedgerError       the ledger cannot be read or written now (locked, full, foreign)
    ├── StorageError      an output, token or shard file cannot be written or read
    ├── ServerError       a server does not answer as it should
    │   └── ServerAwayError    it does not answer at all; waiting may help
    └── DisownedError     this worker's lease is gone: it must stop without writing

Each carries a message for people (what happened, to which thing, with the value) and a hint:
what to do next. Errors of libraries are translated at the border of floor 1.
"""


class LongwatchError(Exception):
    """Something went wrong that a person can act on."""

    code = "error"
    http_status = 500

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        return f"{self.message}. {self.hint[0].upper()}{self.hint[1:]}"


class InputError(LongwatchError):
    """What was given is wrong; nothing was started, nothing was changed."""

    code = "bad_input"
    http_status = 422


class ConflictError(LongwatchError):
    """The present state, or another owner, does not allow this."""

    code = "conflict"
    http_status = 409


class ChangedError(ConflictError):
    """The value is not what whoever ordered had seen; nothing was changed.

    `now` is what it is, in the words that an order of it takes as `expect`.
    """

    def __init__(self, message: str, *, now: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.now = now


class NotFoundError(LongwatchError):
    """There is no such thing. `runs`: number and name of those that may have been meant."""

    code = "not_found"
    http_status = 404

    def __init__(
        self, message: str, *, hint: str = "", runs: tuple[tuple[int, str], ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.runs = runs


class LedgerError(LongwatchError):
    """The ledger cannot be used now."""

    code = "ledger"
    http_status = 503


class StorageError(LongwatchError):
    """A file cannot be written or read."""

    code = "storage"
    http_status = 503


class ServerError(LongwatchError):
    """The inference server does not answer as it should."""

    code = "server"
    http_status = 502


class ServerAwayError(ServerError):
    """The inference server does not answer at all."""

    code = "server_away"


class DisownedError(LongwatchError):
    """The ledger no longer knows this worker; what it holds is no longer its own."""

    code = "disowned"


def plain_words(complaint: str) -> str:
    """Return what a validator said without the library's word for it.

    >>> plain_words("Value error, port 0 is no port")
    'port 0 is no port'
    """
    return complaint.removeprefix("Value error, ")
