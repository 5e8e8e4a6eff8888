"""Settings of the service and its processes: the only reader of the environment.

Owns names, defaults and bounds of what is set for a machine. What is set for a run (sampling,
limits, concurrency) lives in its spec and is stored with it. Read once, at the command line, and
handed on as a value. Invariant: a key or token never shows in a repr, a log or a page.
"""

import re
from ipaddress import ip_network
from pathlib import Path
from shlex import split
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.core.spec_checks import server_urls
from app.errors import InputError, plain_words

PREFIX = "LONGWATCH_"
AssetsMode = Literal["cdn", "local", "off"]
_MB = 1_000_000
LEAST_TOKEN_CHARS = 16
_TOKEN = re.compile(rf"[!-~]{{{LEAST_TOKEN_CHARS},}}")
HOST_NAME = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9])?)(?::([0-9]{1,5}))?")
_SECRETS = frozenset({"api_key", "token", "view_token", "notify_url", "notify_command"})


class Settings(BaseSettings):
    """Each field is read from LONGWATCH_<NAME>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    home: Path = Field(Path("longwatch-home"), description="folder of ledger, lock and logs")
    host: str = Field(
        "127.0.0.1", description="address to listen on; others than loopback need token"
    )
    port: int = Field(8400, ge=0, le=65535, description="port to listen on, 0 for a free one")
    no_web: bool = Field(default=False, description="serve the JSON API alone, without pages")
    assets: AssetsMode = Field(
        "cdn", description="where pages find htmx: cdn, local (a copy, never the CDN) or off"
    )
    offline_assets: Path | None = Field(
        None, description="folder of local copies, looked at before the cache's own"
    )
    token: SecretStr | None = Field(None, description="what a browser must present off loopback")
    view_token: SecretStr | None = Field(
        None, description="what a browser must present to look and change nothing"
    )
    allowed_hosts: str = Field(
        "", description="further names of this service, name or name:port, for proxies and tunnels"
    )
    api_key: SecretStr | None = Field(None, description="key of the inference server")
    tick_s: float = Field(0.5, ge=0.02, le=60, description="how often a worker settles")
    lease_s: float = Field(30.0, ge=1, le=3600, description="how long a silent worker is trusted")
    log_cap_mb: float = Field(20.0, ge=1, le=100_000, description="most that all logs may take")
    disk_low_bytes: int = Field(500 * _MB, ge=0, description="free space that raises a warning")
    disk_stop_bytes: int = Field(20 * _MB, ge=0, description="free space that stops claiming")
    poll_s: float = Field(2.0, ge=0.1, le=600, description="how often servers are asked")
    snapshot_s: float = Field(10.0, ge=0.1, le=600, description="how often figures are stored")
    ledger_log_warn_bytes: int = Field(
        64 * _MB, ge=0, description="size of the ledger's log that raises a warning"
    )
    storage_slow_after_s: float = Field(
        5.0, ge=2.5, le=3600, description="time without a record that raises a warning"
    )
    waiting_after_s: float = Field(
        5.0, ge=0, le=3600, description="time without any server that raises a warning"
    )
    space_timeout_s: float = Field(0.5, gt=0, le=60, description="limit of a free-space check")
    notify_url: SecretStr | None = Field(
        None, description="webhook that is told of conditions and ends: http or https, JSON"
    )
    notify_command: SecretStr | None = Field(
        None, description="command that is told of them too: words, no shell, JSON on its input"
    )
    notify_allow: str = Field(
        "",
        description="hosts or networks with commas that the webhook may reach though not public",
    )
    notify_page: str = Field(
        "", description="address of these pages in messages, where the own one reaches nobody"
    )
    prompts_roots: str = Field(
        "", description="folders with : between them whose prompts may be chosen in a browser"
    )
    output_roots: str = Field(
        "", description="folders with : between them that runs begun in a browser may write below"
    )
    server_urls: str = Field(
        "", description="servers with commas that runs begun in a browser may use"
    )
    dev_gallery: bool = Field(
        default=False, description="serve /dev/gallery: pages of every state, invented"
    )
    die_at: str | None = Field(None, description="tests only: the seam at which to die, name:n")

    @field_validator("token", "view_token", "notify_url", "notify_command", mode="before")
    @classmethod
    def _none_if_blank(cls, given: object) -> object:
        """Take a blank one for none: a blank token would open the door to everybody."""
        return None if isinstance(given, str) and not given.strip() else given

    @field_validator("token", "view_token")
    @classmethod
    def _good_token(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None and not _TOKEN.fullmatch(given.get_secret_value()):
            raise ValueError(
                f"a token has at least {LEAST_TOKEN_CHARS} letters, digits or signs of ASCII and"
                " no space; this makes one: openssl rand -hex 24"
            )
        return given

    @field_validator("allowed_hosts")
    @classmethod
    def _good_hosts(cls, given: str) -> str:
        for name in filter(None, (word.strip() for word in given.split(","))):
            if not HOST_NAME.fullmatch(name.lower()):
                raise ValueError(
                    f'"{name}" is no host name; write names such as headnode:8400 with commas'
                    " between them"
                )
        return given

    @field_validator("notify_url")
    @classmethod
    def _good_webhook(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None:
            _check_address(given.get_secret_value())
        return given

    @field_validator("notify_page")
    @classmethod
    def _good_page(cls, given: str) -> str:
        if given:
            _check_address(given)
        return given

    @field_validator("prompts_roots", "output_roots")
    @classmethod
    def _good_roots(cls, given: str) -> str:
        for each in filter(None, given.split(":")):
            if not Path(each).is_absolute() or Path(each) == Path("/"):
                raise ValueError(
                    f'"{each}" is no folder to allow; write whole paths below / such as'
                    " /data/prompts:/scratch/me"
                )
        return given

    @field_validator("server_urls")
    @classmethod
    def _good_servers(cls, given: str) -> str:
        problems = server_urls(filter(None, (word.strip() for word in given.split(","))))[1]
        if problems:
            raise ValueError("; ".join(problems))
        return given

    @field_validator("notify_command")
    @classmethod
    def _good_command(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None and not split(given.get_secret_value()):
            raise ValueError("it names no command; write for example /opt/tell.sh night")
        return given

    @field_validator("notify_allow")
    @classmethod
    def _good_allowances(cls, given: str) -> str:
        for word in filter(None, (each.strip() for each in given.split(","))):
            host = HOST_NAME.fullmatch(word.lower())
            if (host is None or host[2]) and not _is_network(word):
                raise ValueError(
                    f'"{word}" is neither a host nor a network; write names, addresses or networks'
                    " such as chat.internal, 10.1.2.0/24 with commas between them"
                )
        return given


def _check_address(url: str) -> None:
    """Refuse what is no plain http(s) address; the message never holds it: it may be a secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("it is no address, or its port is no number up to 65535") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is no address; write http://HOST/PATH or https://HOST/PATH")
    if "@" in parts.netloc or parts.fragment:
        raise ValueError("an address here has no user, no password and no #fragment")
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError("an address here has ASCII letters only and no spaces")
    if port == 0:
        raise ValueError("port 0 is no port")


def _is_network(word: str) -> bool:
    try:
        ip_network(word.strip("[]"))
    except ValueError:
        return False
    return True


def load_settings(**overrides: object) -> Settings:
    """Return the settings of this environment; an override (from a flag) wins unless it is None."""
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic checks every value itself
    except ValidationError as error:
        raise InputError(
            "; ".join(_complaint(one["loc"], one["msg"], one["input"]) for one in error.errors()),
            hint="mend the environment variable or the flag of the same name",
        ) from error


def _complaint(place: tuple[int | str, ...], message: str, value: object) -> str:
    name, message = "_".join(map(str, place)), plain_words(message)
    shown = "" if name in _SECRETS else f", got {value!r}"
    return f"{PREFIX}{name.upper()}: {message[:1].lower()}{message[1:]}{shown}"
