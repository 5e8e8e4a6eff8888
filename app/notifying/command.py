"""A message as one run of a command of the operator's: JSON on its input, fields as variables.

Owns the process from start to reaping. Invariants: no shell reads the words; the command gets none
of our own settings (they hold keys) and no descriptor of ours (one is the home's lock); whatever
becomes of us, a command that takes too long is killed with its process group, by its pid.
"""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import split

import orjson

from app.core.format import signal_name
from app.core.messages import Message, to_environment, to_json
from app.notifying.webhook import Reply
from app.settings import PREFIX

LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Command:
    """The one command. Its arguments may hold keys, so `name` shows the program only."""

    words: str = field(repr=False)
    limit_s: float = LIMIT_S

    @property
    def kind(self) -> str:
        return "command"

    @property
    def name(self) -> str:
        return f"command {Path(split(self.words)[0]).name}"

    async def send(self, message: Message) -> Reply:
        """Run it; never raises but for a cancellation."""
        try:
            process = await asyncio.create_subprocess_exec(
                *split(self.words),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                env=_surroundings() | to_environment(message),
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is no command"
            return Reply(is_ok=False, said=f"cannot be run: {why.lower()}")
        try:
            async with asyncio.timeout(self.limit_s):
                await process.communicate(orjson.dumps(to_json(message)))
        except TimeoutError:
            return Reply(is_ok=False, said=f"killed: it took more than {self.limit_s:g} s")
        finally:
            await _end(process)
        return _judged(process.returncode or 0)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what still runs; until it is reaped, its pid is nobody else's."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _surroundings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def _judged(code: int) -> Reply:
    if code < 0:
        return Reply(is_ok=False, said=f"killed by {signal_name(-code)}")
    return Reply(is_ok=code == 0, said=f"exit code {code}")
