"""Settings of the service and its processes: the only reader of the environment.

Owns names, defaults and bounds of what is set for a machine. What is set for a run (sampling,
limits, concurrency) lives in its spec and is stored with it. Read once, at the command line, and
handed on as a value. Invariant: a key or token never shows in a repr, a log or a page.
"""

from pathlib import Path

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import InputError

PREFIX = "LONGWATCH_"
_MB = 1_000_000
_SECRETS = frozenset({"api_key", "token"})


class Settings(BaseSettings):
    """Each field is read from LONGWATCH_<NAME>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    home: Path = Field(Path("longwatch-home"), description="folder of ledger, lock and logs")
    host: str = Field(
        "127.0.0.1", description="address to listen on; others than loopback need token"
    )
    port: int = Field(8400, ge=0, le=65535, description="port to listen on, 0 for a free one")
    token: SecretStr | None = Field(None, description="what a browser must present off loopback")
    api_key: SecretStr | None = Field(None, description="key of the inference server")
    tick_s: float = Field(0.5, ge=0.02, le=60, description="how often a worker settles")
    lease_s: float = Field(30.0, ge=1, le=3600, description="how long a silent worker is trusted")
    log_cap_mb: float = Field(20.0, ge=1, le=100_000, description="most that all logs may take")
    disk_low_bytes: int = Field(500 * _MB, ge=0, description="free space that raises a warning")
    disk_stop_bytes: int = Field(20 * _MB, ge=0, description="free space that stops claiming")
    space_timeout_s: float = Field(0.5, gt=0, le=60, description="limit of a free-space check")
    die_at: str | None = Field(None, description="tests only: the seam at which to die, name:n")


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
    name = "_".join(map(str, place))
    shown = "" if name in _SECRETS else f", got {value!r}"
    return f"{PREFIX}{name.upper()}: {message[:1].lower()}{message[1:]}{shown}"
