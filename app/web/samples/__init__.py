"""Samples of a run: the list with its search, and each one whole.

Owns `/runs/7/samples` and `/runs/7/samples/123`, and the form that tries one again. Everything that
came out of prompts and answers is text here, never markup.
"""

from app.web.samples.forms import sample_forms
from app.web.samples.kinds import one_sample_kind, samples_kind

__all__ = ["one_sample_kind", "sample_forms", "samples_kind"]
