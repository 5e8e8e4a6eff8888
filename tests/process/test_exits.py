"""How the end of a worker's process is said."""

import pytest

from app.core.types import PartitionId, WorkerId
from app.supervisor.processes import Exit


@pytest.mark.parametrize(
    ("code", "said"), [(-9, "killed by SIGKILL"), (-35, "killed by signal 35"), (3, "exit code 3")]
)
def test_an_end_is_said_also_where_the_signal_has_no_name(code: int, said: str) -> None:
    ended = Exit(worker_id=WorkerId(1), partition_id=PartitionId(1), code=code)
    assert ended.in_words == said
