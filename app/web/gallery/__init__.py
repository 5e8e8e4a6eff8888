"""The gallery: every state that a page must be able to show, drawn from invented figures."""

from app.web.gallery.entries import ENTRIES
from app.web.gallery.pages import PAGES
from app.web.gallery.routes import gallery_routes

__all__ = ["ENTRIES", "PAGES", "gallery_routes"]
