"""File against ledger: after the repairs each kept sample has one line, each line one sample."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.reconcile import LineFact, Repairs, SampleFact, reconcile
from app.core.states import KEPT, OPEN, SampleState
from app.core.types import SampleId

GENS = frozenset({"gen-one", "gen-two"})


def line(sample: int, attempt: int = 1, **facts: object) -> LineFact:
    made = LineFact(
        offset=1000 * sample + 100 * attempt,
        n_bytes=100,
        sample_id=SampleId(sample),
        attempt=attempt,
        prompt_sha256=f"sha{sample}",
        gen_id="gen-one",
    )
    return replace(made, **facts)  # type: ignore[arg-type]  # the test's own facts


def sample(
    number: int,
    state: SampleState = SampleState.OK,
    *,
    here: bool = True,
    elsewhere: bool = False,
) -> SampleFact:
    return SampleFact(
        sample_id=SampleId(number),
        state=state,
        prompt_sha256=f"sha{number}",
        points_here=here,
        points_elsewhere=elsewhere,
    )


def repairs(lines: list[LineFact], *samples: SampleFact) -> Repairs:
    return reconcile(lines, {each.sample_id: each for each in samples}, GENS)


def test_what_agrees_needs_no_repair() -> None:
    found = repairs(
        [line(1), line(2)], sample(1), sample(2), sample(3, SampleState.FAILED, here=False)
    )

    assert found.is_clean
    assert [each.sample_id for each in found.keep] == [1, 2]


@pytest.mark.parametrize("state", sorted(OPEN))
def test_a_line_that_the_ledger_does_not_know_of_is_adopted(state: SampleState) -> None:
    """Killed between the line and the settle."""
    found = repairs([line(1)], sample(1, state, here=False))

    assert found.adopt == [line(1)]
    assert not found.is_clean


@pytest.mark.parametrize("state", sorted(KEPT))
def test_a_kept_sample_whose_line_is_gone_loses_it(state: SampleState) -> None:
    """Killed between the settle and the disk, or edited by hand."""
    assert repairs([], sample(1, state)).lose == [1]


@pytest.mark.parametrize("state", [SampleState.FAILED, SampleState.REJECTED])
def test_a_failed_samples_unknown_line_is_dropped(state: SampleState) -> None:
    found = repairs([line(1)], sample(1, state, here=False))

    assert (found.keep, found.adopt, found.lose, found.n_dropped_lines) == ([], [], [], 1)


def test_of_two_lines_of_a_sample_the_newest_attempt_stays() -> None:
    found = repairs([line(1, 2), line(1, 3), line(1, 1)], sample(1))

    assert found.keep == [line(1, 3)]
    assert found.n_dropped_lines == 2


def test_a_doubled_line_stays_once() -> None:
    copy = line(1, offset=9000)

    found = repairs([line(1), copy], sample(1))

    assert found.keep == [line(1)]
    assert found.n_dropped_lines == 1


def test_the_line_of_a_sample_that_is_not_in_the_ledger_is_dropped() -> None:
    found = repairs([line(1), line(99)], sample(1))

    assert found.keep == [line(1)]
    assert found.n_dropped_lines == 1


def test_a_line_to_another_prompt_is_no_answer() -> None:
    found = repairs([line(1, prompt_sha256="other")], sample(1))

    assert found.lose == [1]
    assert found.n_dropped_lines == 1


def test_an_unknown_line_of_unknown_settings_is_not_adopted() -> None:
    found = repairs([line(1, gen_id="who knows")], sample(1, SampleState.PENDING, here=False))

    assert found.adopt == []
    assert found.n_dropped_lines == 1


def test_a_recorded_line_stays_whatever_its_settings_were() -> None:
    assert repairs([line(1, gen_id="who knows")], sample(1)).keep == [line(1, gen_id="who knows")]


def test_a_line_whose_sample_has_its_answer_in_another_file_is_dropped() -> None:
    found = repairs([line(1)], sample(1, here=False, elsewhere=True))

    assert (found.adopt, found.n_dropped_lines) == ([], 1)


def test_a_retried_sample_keeps_its_old_line() -> None:
    """It is pending again, and its line is valid until a newer one is settled."""
    found = repairs([line(1)], sample(1, SampleState.PENDING))

    assert found.keep == [line(1)]
    assert found.is_clean


def test_the_words_count_every_repair() -> None:
    found = repairs(
        [line(1), line(2), line(2, 2), line(9)],
        sample(1, SampleState.PENDING, here=False),
        sample(2),
        sample(3),
    )

    assert found.in_words().startswith("1 lines as recorded, 1 adopted, 1 samples put back")
    assert "2 lines dropped" in found.in_words()


LINES = st.builds(
    line,
    st.integers(1, 6),
    st.integers(1, 3),
    offset=st.integers(0, 10_000),
    prompt_sha256=st.sampled_from([f"sha{k}" for k in range(1, 7)]),
    gen_id=st.sampled_from(["gen-one", "gen-two", "unknown"]),
)


@given(
    lines=st.lists(LINES, max_size=20, unique_by=lambda each: each.offset),
    facts=st.dictionaries(
        st.integers(1, 6),
        st.tuples(st.sampled_from(SampleState), st.sampled_from(["here", "elsewhere", "nowhere"])),
    ),
)
def test_repairs_leave_one_line_for_one_sample_and_nothing_unaccounted(
    lines: list[LineFact], facts: dict[int, tuple[SampleState, str]]
) -> None:
    samples = [
        sample(number, state, here=place == "here", elsewhere=place == "elsewhere")
        for number, (state, place) in facts.items()
    ]

    found = repairs(lines, *samples)

    stay = [*found.keep, *found.adopt]
    assert len({each.sample_id for each in stay}) == len(stay)
    assert len(stay) + found.n_dropped_lines == len(lines)
    assert [each.offset for each in found.keep] == sorted(each.offset for each in found.keep)
    pointing = {each.sample_id for each in samples if each.points_here}
    assert pointing == {each.sample_id for each in found.keep} | set(found.lose)
    assert all(each.prompt_sha256 == f"sha{each.sample_id}" for each in stay)
    assert not {each.sample_id for each in found.adopt} & set(found.lose)
