"""What training data takes on the disk: the arithmetic of a run of 100,000 answers."""

from random import Random
from statistics import pstdev

import pytest

from app.core.spread import Spread
from app.core.training_bytes import (
    Form,
    HiddenStates,
    Stored,
    deviation_up_to,
    merged_bytes,
    summed,
    tokens_up_to,
)

EAGLE3 = HiddenStates(hidden_size=7168)
STORY_TOKENS = 44_000 * 3_793 + 3_572 * 8_000 + 37_000 * 1_500
TB = 10**12


def test_a_token_of_eagle_3_takes_57_360_bytes() -> None:
    assert EAGLE3.bytes_per_token == 57_360
    assert HiddenStates(hidden_size=7168, stored=Stored.FP8).bytes_per_token == 28_688
    assert HiddenStates(hidden_size=7168, n_last_layers=0).bytes_per_token == 43_024


@pytest.mark.parametrize(
    ("states", "n_bytes", "million_tokens"),
    [
        (EAGLE3, 92 * TB // 10, 160.4),
        (EAGLE3, 92 * 2**40 // 10, 176.4),
        (HiddenStates(hidden_size=7168, n_last_layers=0), 92 * TB // 10, 213.8),
    ],
)
def test_what_9_2_tb_hold(states: HiddenStates, n_bytes: int, million_tokens: float) -> None:
    assert round(states.tokens_within(n_bytes) / 1e6, 1) == million_tokens


def test_what_the_story_needs() -> None:
    assert round(STORY_TOKENS / 1e6) == 251
    assert round(EAGLE3.bytes_of(STORY_TOKENS) / TB, 1) == 14.4
    aux_alone = HiddenStates(hidden_size=7168, n_last_layers=0)
    assert round(aux_alone.bytes_of(STORY_TOKENS) / TB, 1) == 10.8
    gb = [round(merged_bytes(STORY_TOKENS, form) / 1e9, 1) for form in Form]
    assert gb == [1.7, 0.3, 4.0]


def test_a_cut_is_taken_of_each_length_and_not_of_their_mean() -> None:
    lengths = Spread.of([1_024] * 3 + [16_384])

    assert tokens_up_to(lengths, None) == (3 * 1_024 + 16_384) / 4
    assert tokens_up_to(lengths, 2_048) == (3 * 1_024 + 2_048) / 4


def test_prompt_and_answer_together_have_the_sum_of_their_means() -> None:
    prompts, outputs = Spread.of([100, 300]), Spread.of([1_000, 2_000, 6_000])

    both = summed(prompts, outputs)

    assert both.n == 6
    assert both.mean == pytest.approx(200 + 3_000)


def test_the_deviation_is_that_of_the_lengths_themselves_within_a_few_per_cent() -> None:
    random = Random(7)
    lengths = [round(random.lognormvariate(7, 0.8)) for _ in range(4_000)]

    assert deviation_up_to(Spread.of(lengths), None) == pytest.approx(pstdev(lengths), rel=0.02)
    cut = [min(each, 2_048) for each in lengths]
    assert deviation_up_to(Spread.of(lengths), 2_048) == pytest.approx(pstdev(cut), rel=0.03)
    assert deviation_up_to(Spread.of([500] * 9), None) == pytest.approx(0, abs=30)
    assert deviation_up_to(Spread(), None) == 0.0
