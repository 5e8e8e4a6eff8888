"""The targets that are set, and a test message to all of them.

Owns how settings become targets. They come from the environment of whoever runs the process and
from nowhere else: no page and no body of a request names one.
"""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.clock import to_ms
from app.core.messages import Message, MessageEvent
from app.notifying.addresses import allowed_of
from app.notifying.command import Command
from app.notifying.webhook import Reply, Webhook
from app.settings import Settings

KINDS = ("webhook", "command")
_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to


class Target(Protocol):
    @property
    def kind(self) -> str:
        """Return the word that the ledger knows it by, one of KINDS."""

    @property
    def name(self) -> str:
        """Return what of it may be shown."""

    async def send(self, message: Message) -> Reply:
        """Send one message; what went wrong is in the reply, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a target answered to a test message."""

    target: str
    is_ok: bool
    said: str

    @property
    def sentence(self) -> str:
        return f"{self.target}: {'delivered' if self.is_ok else 'not delivered'}, {self.said}"


def targets_of(settings: Settings) -> tuple[Target, ...]:
    found: list[Target] = []
    if settings.notify_url is not None:
        allowed = allowed_of(settings.notify_allow)
        found.append(Webhook(settings.notify_url.get_secret_value(), allowed))
    if settings.notify_command is not None:
        found.append(Command(settings.notify_command.get_secret_value()))
    return tuple(found)


async def send_tests(targets: Sequence[Target], now: datetime, page: str) -> tuple[Told, ...]:
    """Send a test message to each target, all at once; return what each answered."""
    message = Message(
        id=f"test-{to_ms(now)}",
        event=MessageEvent.TEST,
        kind="test",
        sentence=f"test message of Longwatch on {socket.gethostname()}: this target is reached",
        at=now,
        since=now,
        page=page,
    )
    replies = await asyncio.gather(*(target.send(message) for target in targets))
    return tuple(
        Told(target=target.name, is_ok=reply.is_ok, said=reply.said)
        for target, reply in zip(targets, replies, strict=True)
    )


def page_address(settings: Settings, address: str) -> str:
    """Return under which address a reader of a message finds the pages, "" if there are none."""
    if settings.no_web or not address:
        return ""
    if settings.notify_page:
        return settings.notify_page.rstrip("/")
    host, _, port = address.removeprefix("http://").rpartition(":")
    return f"http://{socket.gethostname()}:{port}" if host in _WILDCARDS else address
