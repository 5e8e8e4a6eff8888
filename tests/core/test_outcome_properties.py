"""What holds for every verdict, whatever a server may answer."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from app.core.outcome import Asked, Finish, finish_type, judge
from app.core.states import SampleState
from app.core.types import AttemptEnd, EndKind, Fail, Keep, PutBack

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
REASONS = JSON | st.fixed_dictionaries(
    {"type": st.sampled_from(["stop", "length", "abort", "x"]) | JSON},
    optional={
        "matched": JSON | st.just("NaN happened"),
        "length": JSON,
        "status_code": JSON | st.sampled_from([400, 401, 500, 503]),
        "message": JSON,
    },
)
TOKENS = st.lists(st.integers(0, 5), max_size=6).map(lambda tokens: array("I", tokens))
ENDS = st.builds(
    AttemptEnd,
    kind=st.sampled_from(EndKind),
    ids=TOKENS,
    finish_reason=REASONS | st.sampled_from(["stop", "length"]),
    status=st.none() | st.sampled_from([200, 400, 401, 404, 408, 429, 500, 503, 507, 999]),
    message=st.text(max_size=5),
    retry_after_s=st.none() | st.floats(),
    reported_prompt_tokens=st.none() | st.sampled_from([10, 11]),
)
ASKED = st.builds(
    Asked,
    prompt_tokens=st.just(10),
    held=TOKENS,
    max_new_tokens=st.integers(1, 20),
    charged=st.integers(0, 3),
    max_attempts=st.integers(1, 4),
    server_deaths=st.integers(0, 4),
    is_trial=st.booleans(),
    was_alone=st.booleans(),
    end_token_ids=st.just(frozenset({2})),
    think_open=st.none() | st.just(3),
    think_close=st.none() | st.just(4),
    thinking_opened_by_prompt=st.booleans(),
)


@given(end=ENDS, asked=ASKED, alive=st.booleans(), delay_s=st.floats(0, 60))
def test_nothing_is_kept_without_a_normal_end(
    end: AttemptEnd, asked: Asked, alive: bool, delay_s: float
) -> None:
    outcome = judge(end, asked, server_alive=alive, delay_s=delay_s)

    if isinstance(outcome, Keep):
        assert end.kind is EndKind.FINISHED
        assert finish_type(end.finish_reason) in {Finish.STOP, Finish.LENGTH}
        assert end.reported_prompt_tokens in {None, asked.prompt_tokens}
        if finish_type(end.finish_reason) is Finish.LENGTH:
            assert outcome.state is not SampleState.OK


@given(end=ENDS, asked=ASKED, alive=st.booleans(), delay_s=st.floats(0, 60))
def test_no_charge_reaches_max_attempts_and_delays_are_bounded(
    end: AttemptEnd, asked: Asked, alive: bool, delay_s: float
) -> None:
    outcome = judge(end, asked, server_alive=alive, delay_s=delay_s)

    if isinstance(outcome, PutBack):
        assert asked.charged + outcome.charged < asked.max_attempts or not outcome.charged
        assert 0 <= outcome.delay_s <= 3601
        assert outcome.reason
    if isinstance(outcome, Fail):
        assert outcome.reason


@given(end=ENDS, asked=ASKED, delay_s=st.floats(0, 60))
def test_only_a_cut_asks_whether_the_server_lives(
    end: AttemptEnd, asked: Asked, delay_s: float
) -> None:
    alive, dead = (judge(end, asked, server_alive=up, delay_s=delay_s) for up in (True, False))

    assert alive == dead or end.kind is EndKind.CUT
