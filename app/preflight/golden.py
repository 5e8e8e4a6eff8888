"""The mark of the servers' tokenizer: what their /tokenize makes of the golden strings.

One short request a server. A server that cannot tell is no error: it may be too old, or answer
token ids only.
"""

from collections.abc import Sequence

from app.core.golden import STRINGS, first_difference, mark_of
from app.errors import ServerError
from app.preflight.report import Findings
from app.sglang.client import ServerClient


async def check_golden(clients: Sequence[ServerClient], findings: Findings) -> None:
    """Note the mark; an error if two servers of a run encode a string differently."""
    first = ""
    for client in clients:
        try:
            ids = await client.tokenize_many(STRINGS)
        except ServerError:
            continue
        if ids is None:
            continue
        mark = mark_of(ids)
        if findings.golden is None:
            findings.golden, first = mark, client.url
        elif (text := first_difference(findings.golden, mark)) is not None:
            findings.errors.append(
                f"{first} and {client.url} have different tokenizers: golden strings differ,"
                f" first {text!r}"
            )
