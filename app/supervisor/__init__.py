"""Floor 2: keeps one worker process per active partition, and nothing else running."""

from app.supervisor.supervisor import Supervisor

__all__ = ["Supervisor"]
