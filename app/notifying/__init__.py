"""Floor 2: telling somebody outside, by webhook or command, what a run needs and how it ends."""

from app.notifying.notifier import Notifier
from app.notifying.targets import Told, page_address, send_tests, targets_of

__all__ = ["Notifier", "Told", "page_address", "send_tests", "targets_of"]
