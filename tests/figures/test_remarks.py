"""What is said beside a partition whose turns wait."""

from app.core.types import Counts
from app.figures.remarks import remarks
from tests.core.test_supervision import part


def test_turns_that_wait_are_said_while_the_partition_works() -> None:
    talks = part(1, counts=Counts(running=3, pending=60), n_waiting=55)

    assert remarks(talks, []) == ("55 wait for earlier turns",)
    assert remarks(part(1, counts=Counts(running=3, pending=5)), []) == ()
    over = part(1, counts=Counts(ok=3, pending=60), n_waiting=55, budget_reached=True)
    assert remarks(over, []) == ("budget reached",)
