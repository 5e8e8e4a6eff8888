"""Floor 3: the JSON API under `/api/v1`, what guards it, and the token that opens it."""

from app.api.app import create_app
from app.api.carry_out import carry_out
from app.api.door import ServiceDoor
from app.api.token_file import home_token, read_token

__all__ = ["ServiceDoor", "carry_out", "create_app", "home_token", "read_token"]
