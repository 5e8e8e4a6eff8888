"""Floor 3: the JSON API under `/api/v1`, and the application that it and the pages are part of."""

from app.api.app import Pages, create_app
from app.api.carry_out import carry_out
from app.api.door import ServiceDoor

__all__ = ["Pages", "ServiceDoor", "carry_out", "create_app"]
