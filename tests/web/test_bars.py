"""The bar of progress: what failed takes its room, and never the colour of what is done."""

import pytest

from app.core.types import Counts
from app.web.bars import Bar, bar


@pytest.mark.parametrize(
    ("counts", "goal", "expected"),
    [
        (Counts(failed=10), None, Bar(done=0.0, failed=100.0, flying=0.0, tick=None)),
        (
            Counts(ok=5, failed=2, running=1, pending=2),
            None,
            Bar(done=50.0, failed=20.0, flying=10.0, tick=None),
        ),
        (Counts(ok=9_999, failed=1), None, Bar(done=99.9, failed=0.1, flying=0.0, tick=None)),
        # a goal counts only what is kept: what failed is made up for by other samples
        (Counts(ok=5, failed=2, pending=93), 10, Bar(done=50.0, failed=0.0, flying=0.0, tick=None)),
    ],
)
def test_what_failed_has_its_own_part(counts: Counts, goal: int | None, expected: Bar) -> None:
    assert bar(counts, goal, 0, None, 50) == expected
