"""The counts of a merge: whatever comes, they add up, and what is stored comes back."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.core.reasoning import NO_REASONING
from app.export.choosing import Drop, Finish
from app.export.records import Example
from app.export.tally import Merged, PartitionTally, merged_from, percentile, restored

LENGTHS = st.lists(st.integers(1, 40), max_size=40)
EXAMPLES = st.builds(
    lambda prompt, answer, finish: Example(
        partition="p", key="k", native="k", source="", prompt=[1] * prompt, answer=[2] * answer,
        finish=finish, stop_id=None, is_regenerated=True, reasoning=NO_REASONING,
        prompt_sha256="", flags=("adopted",), gen_id="g", metadata={},
    ),
    st.integers(1, 30), st.integers(1, 30), st.sampled_from(Finish),
)  # fmt: skip


@given(rows=st.lists(st.one_of(EXAMPLES, st.sampled_from(Drop)), max_size=60))
def test_no_sample_is_lost_without_a_reason(rows: list[Example | Drop]) -> None:
    tally = PartitionTally(name="p")
    for row in rows:
        if isinstance(row, Example):
            tally.keep(row)
        else:
            tally.drop(row)

    kept = [row for row in rows if isinstance(row, Example)]
    assert tally.n_samples == len(rows) == tally.n_kept + tally.dropped.total()
    assert tally.n_tokens == sum(row.n_tokens for row in kept)
    assert tally.finished.total() == tally.lengths.total() == len(kept)
    assert tally.flags["adopted"] == len(kept)
    assert restored(tally.stored()) == tally


@given(lengths=LENGTHS)
def test_a_percentile_is_a_length_that_is_there(lengths: list[int]) -> None:
    counted = Counter(lengths)
    for percent in (1, 50, 95, 100):
        found = percentile(counted, percent)
        assert found in (counted or {0: 0})
        if lengths:
            assert sum(length <= found for length in lengths) * 100 >= percent * len(lengths)
            assert sum(length < found for length in lengths) * 100 < percent * len(lengths)


def test_what_is_stored_of_a_merge_comes_back() -> None:
    done = Merged(
        tallies=[PartitionTally(name="p", n_samples=1, dropped=Counter({"failed": 1}))],
        shards=[{"file": "data/train-00000.jsonl", "records": 1, "tokens": 5, "bytes": 9}],
        frequency=Counter({7: 2, 163_607: 1}),
    )
    assert merged_from(done.stored()) == done
