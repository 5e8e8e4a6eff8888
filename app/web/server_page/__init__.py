"""The servers of a run, one card each: `/runs/7/server`."""

from app.web.server_page.kind import server_kind

__all__ = ["server_kind"]
