"""Floor 2: who may come in, as what, under which name, from which page: tokens, sessions, user."""

from app.gate.gate import Gate
from app.gate.hosts import Hosts, allowed_hosts
from app.gate.keys import Keys
from app.gate.opening import open_keys
from app.gate.rotation import Rotation
from app.gate.token_file import home_token, read_token

__all__ = [
    "Gate",
    "Hosts",
    "Keys",
    "Rotation",
    "allowed_hosts",
    "home_token",
    "open_keys",
    "read_token",
]
