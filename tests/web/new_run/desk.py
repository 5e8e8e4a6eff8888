"""A home whose service allows some folders and one simulated server, for the tests of new runs."""

import asyncio
import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import orjson

from app.settings import Settings
from tests.api.conftest import Door
from tests.api.home import Home


@dataclass
class PromptDesk:
    """Prompts below `prompts`, answers below `answers`; nothing of `outside` is allowed."""

    home: Home
    folder: Path
    server_url: str
    door: Door = field(init=False)

    def __post_init__(self) -> None:
        self.prompts, self.answers = self.folder / "prompts", self.folder / "answers"
        self.outside = self.folder / "outside"
        for folder in (self.prompts, self.answers, self.outside):
            folder.mkdir()
        self.door = Door(self.home, settings=self.settings())

    def settings(self, **changes: str) -> Settings:
        given = {
            "prompts_roots": str(self.prompts),
            "output_roots": str(self.answers),
            "server_urls": self.server_url,
            **changes,
        }
        return Settings(home=self.home.folder, **given)  # type: ignore[arg-type]  # all texts

    def write(self, place: str, lines: Iterable[object], below: Path | None = None) -> Path:
        """Write a prompt file; a text is a line as it is, anything else its JSON."""
        path = (below or self.prompts) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = [each.encode() if isinstance(each, str) else orjson.dumps(each) for each in lines]
        path.write_bytes(b"".join(line + b"\n" for line in raw))
        return path

    def form(self, **changes: str | list[str]) -> Mapping[str, str | list[str]]:
        """Return the fields of a filled form of the folder `night` with its partition B1_chat."""
        values: dict[str, str | list[str]] = {
            "name": "fresh",
            "prompts_dir": str(self.prompts / "night"),
            "output_dir": str(self.answers / "fresh"),
            "server_urls": [self.server_url],
            "short_concurrency": "4",
            "short_max_new_tokens": "100",
            "long_concurrency": "2",
            "long_max_new_tokens": "200",
            "temperature": "1.0",
            "top_p": "0.95",
            "samples_per_prompt": "1",
            "token_budget": "",
            "deadline": "",
            "partition": ["B1_chat"],
            "B1_chat:class": "short",
            "B1_chat:token_budget": "",
            "B1_chat:max_samples": "",
        }
        return values | changes

    def spec(self, **run: object) -> str:
        """Return a spec as it is pasted, its `[run]` with changes."""
        values = {
            "name": "fresh",
            "server_urls": [self.server_url],
            "prompts_dir": str(self.prompts / "night"),
            "output_dir": str(self.answers / "fresh"),
            **run,
        }
        lines = [f"{key} = {orjson.dumps(one).decode()}" for key, one in values.items()]
        classes = "[class.short]\nconcurrency = 4\nmax_new_tokens = 100\n"
        return "\n".join(["[run]", *lines, classes])


def chat(key: str, text: str) -> dict[str, object]:
    return {"id": key, "messages": [{"role": "user", "content": text}]}


async def reviewed(browser: httpx.AsyncClient, fields: Mapping[str, str | list[str]]) -> str:
    """Post a form, wait for the end of its check, and return the address of the review."""
    answer = await browser.post("/new", data=dict(fields))
    assert answer.status_code == 303, answer.text
    address = answer.headers["location"]
    async with asyncio.timeout(30):
        while "Checking:" in (await browser.get(address)).text:  # noqa: ASYNC110 - as a browser does
            await asyncio.sleep(0.01)
    return str(address)


async def text_of(browser: httpx.AsyncClient, address: str) -> str:
    answer = await browser.get(address)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)
