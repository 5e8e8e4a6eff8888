"""A partition that stands still while others get tokens: the bound, and what explains a silence."""

from datetime import UTC, datetime, timedelta

import pytest

from app.core.silence import Silence, stands_still

SINCE = datetime(2025, 3, 1, 12, tzinfo=UTC)
STALL_AFTER_S = 600.0


def after(seconds: float) -> datetime:
    return SINCE + timedelta(seconds=seconds)


def test_it_begins_at_the_bound() -> None:
    silence = Silence(since=SINCE, others_at=after(599))

    assert not stands_still(silence, STALL_AFTER_S, after(599))
    assert stands_still(silence, STALL_AFTER_S, after(600))


@pytest.mark.parametrize("others_at", [None, SINCE, after(299)])
def test_where_the_server_is_silent_too_it_is_the_run_that_is_stalled(
    others_at: datetime | None,
) -> None:
    assert not stands_still(Silence(since=SINCE, others_at=others_at), STALL_AFTER_S, after(900))


@pytest.mark.parametrize(
    ("first_token_p99_s", "bound_s"), [(None, 1_800), (60.0, 600), (300.0, 1_500)]
)
def test_what_waits_in_the_servers_queue_may_be_silent_for_longer(
    first_token_p99_s: float | None, bound_s: float
) -> None:
    silence = Silence(
        since=SINCE,
        others_at=after(bound_s),
        n_waiting=182,
        first_token_p99_s=first_token_p99_s,
    )
    assert not stands_still(silence, STALL_AFTER_S, after(bound_s - 1))
    assert stands_still(silence, STALL_AFTER_S, after(bound_s))
