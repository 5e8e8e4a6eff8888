"""New run: from a folder of prompts, or from a spec that was pasted, by way of a review to a start.

Owns the pages `/new` and `/new/<check>`. Nothing is written before Start is pressed.
"""

from app.web.new_run.checks import Checks
from app.web.new_run.kind import review_kind
from app.web.new_run.routes import new_run_routes

__all__ = ["Checks", "new_run_routes", "review_kind"]
