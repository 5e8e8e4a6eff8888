"""Two runs side by side: `/compare?a=7&b=9`."""

from app.web.compare.kind import compare_kind

__all__ = ["compare_kind"]
