"""Request ids: no id begins another, and each can be traced to its claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.rids import RequestId, parse_rid

IDS = st.builds(
    RequestId,
    run_id=st.integers(0, 99_999),
    partition_id=st.integers(0, 99_999),
    sample_id=st.integers(0, 9_999_999_999),
    attempt=st.integers(0, 99_999),
    salt=st.integers(0, 2**32 - 1),
)


@given(IDS)
def test_an_id_is_read_back_as_it_was_made(request_id: RequestId) -> None:
    assert parse_rid(str(request_id)) == request_id


@given(IDS, IDS)
def test_no_id_is_a_prefix_of_another(first: RequestId, second: RequestId) -> None:
    """SGLang aborts whatever begins with the id it is given."""
    assert (first == second) == str(second).startswith(str(first))


def test_an_id_is_no_health_check_of_the_server() -> None:
    made = RequestId(run_id=1, partition_id=1, sample_id=1, attempt=1, salt=1)

    assert str(made).startswith("lw")


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "e936403ed69f4a0f86b8fbdf864833a3",
        "lw1-2-3-4-5",
        "lw00001-00002-0000000003-00004-000000FF",
        "lw00001-00002-0000000003-00004-000000ff\n",
        " lw00001-00002-0000000003-00004-000000ff",
        "lw00001-00002-0000000003-00004-000000ff_0",
        "lw\u0660\u0660\u0660\u0660\u0661-00002-0000000003-00004-000000ff",
    ],
)
def test_what_is_not_ours_is_not_read(foreign: str) -> None:
    assert parse_rid(foreign) is None
