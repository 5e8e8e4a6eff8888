"""From a checked spec to a run that is under way: a new one, or the same one going on.

Owns what a submission may change in a run that exists. Invariants: a run whose prompts cannot be
read leaves nothing behind; settings that decide answers change only when that was accepted, and
then under a new gen_id that stands in the manifest before any answer bears it.
"""

from app.submission.adding import Added, add_to_run
from app.submission.checking import Checked, Planned, check, plan
from app.submission.manifest import MANIFEST_NAME
from app.submission.permitting import Permitted, not_permitted, permitted
from app.submission.refusing import refusals
from app.submission.scanning import complete_scans
from app.submission.submit import submit

__all__ = [
    "MANIFEST_NAME",
    "Added",
    "Checked",
    "Permitted",
    "Planned",
    "add_to_run",
    "check",
    "complete_scans",
    "not_permitted",
    "permitted",
    "plan",
    "refusals",
    "submit",
]
