"""The text of an answer: the server's, or for a continued one asked of it; best effort.

The ids are the truth. Settling never waits for a text, so it is null where the server is slow.
"""

import asyncio

from app.core.answer import text_ids, trimmed_text
from app.sglang.client import ServerClient
from app.worker.call import Call

_WAIT_S = 1.0


async def text_of(call: Call, client: ServerClient) -> str | None:
    """Return the answer's text, trimmed as the server would have trimmed it in one piece."""
    if call.end is None or not call.claim.held:
        return call.end.text if call.end else None
    reason = call.end.finish_reason
    try:
        async with asyncio.timeout(_WAIT_S):
            text = await client.detokenize(text_ids(call.output_ids(), reason).tolist())
    except TimeoutError:
        return None
    return None if text is None else trimmed_text(text, reason)
