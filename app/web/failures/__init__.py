"""Failures of a run by their reasons, and their retry: `/runs/7/failures`.

Owns the page, its confirmation step, and the form that both post. What is moved is decided by the
same `Choice` that the page was filtered with.
"""

from app.web.failures.forms import failure_forms
from app.web.failures.kind import asking_kind, failures_kind

__all__ = ["asking_kind", "failure_forms", "failures_kind"]
