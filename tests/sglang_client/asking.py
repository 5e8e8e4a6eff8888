"""How these tests send one request with the product's own client."""

from array import array

from app.core.types import AttemptEnd
from app.sglang.client import ServerClient
from app.sglang.protocol import generate_body
from app.sglang.stream import Answer
from app.simulator.tokenizer import encode_chat


def body(text: str, *, rid: str = "lw-1", max_new_tokens: int = 30, interval: int = 1) -> bytes:
    return generate_body(
        rid=rid,
        prompt=array("I", encode_chat([{"role": "user", "content": text}])),
        held=array("I"),
        max_new_tokens=max_new_tokens,
        sampling={"temperature": 0.0, "ignore_eos": True},
        stream_interval=interval,
    )


async def ask(
    client: ServerClient,
    text: str = "a",
    *,
    answer: Answer | None = None,
    timeout_s: float | None = None,
    rid: str = "lw-1",
    max_new_tokens: int = 30,
) -> AttemptEnd:
    sent = body(text, rid=rid, max_new_tokens=max_new_tokens)
    return await client.generate(sent, answer or Answer(), timeout_s)
