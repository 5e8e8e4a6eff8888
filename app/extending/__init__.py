"""Truncated answers go on from where they stopped, under a higher limit."""

from app.extending.job import Longer, extend

__all__ = ["Longer", "extend"]
