"""The whole list of activity of a run: who did what, when, from where."""

from app.web.activity.kind import activity_kind

__all__ = ["activity_kind"]
