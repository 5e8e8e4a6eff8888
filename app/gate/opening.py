"""The keys of one service as its settings and its home say them, and what changes them later."""

from pathlib import Path

from pydantic import SecretStr

from app.clock import Clock
from app.gate.ended import Ended
from app.gate.hosts import is_loopback
from app.gate.keys import Keys
from app.gate.rotation import Rotation
from app.gate.token_file import home_token, view_token
from app.settings import Settings


def open_keys(
    home: Path, settings: Settings, host: str, port: int, clock: Clock
) -> tuple[Keys, Rotation]:
    """Return the keys of a listener, and who looks for other tokens while it lives.

    Raises InputError where the token of those who look is the operators'.
    """
    given, given_view = _plain(settings.token), _plain(settings.view_token)
    token = home_token(home, given)
    keys = Keys(
        token,
        is_open_to_own_user=given is None and is_loopback(host),
        port=port,
        clock=clock,
        view_token=view_token(home, token, given_view),
        ended=Ended(home),
    )
    return keys, Rotation(home, keys, given, given_view)


def _plain(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
