"""Floor 2: one look at all live runs per second, shared by everybody, and its history."""

from app.recorder.recorder import Recorder

__all__ = ["Recorder"]
