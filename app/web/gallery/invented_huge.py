"""Invented figures, lists and texts that are as large as they come."""

from dataclasses import replace
from datetime import timedelta

from app.core.spread import Measure, Spread
from app.core.states import SampleState
from app.core.types import SampleId
from app.files.prompt_records import Prompt
from app.ledger.glimpses import Reason
from app.ledger.one_sample import AttemptEntry, LineEntry
from app.web.gallery.invented import NOW, STATES
from app.web.gallery.invented_parts import KNOWN, OPENED, VIEW, sample
from app.web.samples.reading import N_SHOWN

_MANY = 9_999_999_999
_LONG_KEY = "glaive/function-calling-v2/" + "0123456789abcdef" * 30
_LONG_REASON = "no answer within 600 s: " + "http://gpu-17.internal:30000/generate " * 20
_STATES = tuple(SampleState)
_HUGE = STATES["huge"].partitions[0]


def _one_of_many(n: int) -> SampleState:
    return _STATES[n % len(_STATES)]


MANY_SAMPLES = tuple(
    replace(
        sample(
            n,
            _one_of_many(n),
            _LONG_REASON if _one_of_many(n) is SampleState.FAILED else None,
            key=f"{n:06}/{_LONG_KEY}" if n % 3 else "",
        ),
        index=_MANY + n,
        replica=n % 4,
    )
    for n in range(1, N_SHOWN + 1)
)
_LARGEST = replace(
    sample(7, SampleState.FAILED, _LONG_REASON, key=_LONG_KEY),
    index=_MANY,
    replica=99_999,
    prompt_tokens=99_999_999,
    output_tokens=_MANY,
    held_tokens=_MANY,
    attempt=99_999,
    charged=88_888,
    flags=("degenerate", "template error", "empty reasoning", "language"),
)
HUGE_READ = replace(
    KNOWN,
    view=replace(VIEW, counts=_HUGE.counts, tokens=_HUGE.tokens, token_budget=10**16),
    samples=(_LARGEST, *MANY_SAMPLES[:4]),
    reasons=(
        Reason(state=SampleState.FAILED, reason=_LONG_REASON, n=_MANY),
        Reason(state=SampleState.REJECTED, reason="x" * 300, n=_MANY),
    ),
    spreads={
        kind: Spread.of([2**31 - 1, 2**30, 2**20, 1_000] * 50)
        for kind in (Measure.OUTPUT, Measure.PROMPT, Measure.FIRST_TOKEN, Measure.LATENCY)
    },
)
HUGE_SAMPLE = replace(
    OPENED,
    whole=replace(
        OPENED.whole,
        entry=_LARGEST,
        max_new_tokens=_MANY,
        n_checkpoints=_MANY,
        checkpoint_tokens=_MANY,
        attempts=tuple(
            AttemptEntry(
                attempt=n,
                at=NOW - timedelta(days=900 - n),
                is_charged=n % 2 == 0,
                tokens=_MANY,
                reason=_LONG_REASON,
            )
            for n in range(1, 9)
        ),
        line=LineEntry(path="/data/prepared/" + "B1_part/" * 30, offset=_MANY, n_bytes=_MANY),
    ),
    before=SampleId(_MANY),
    behind=SampleId(_MANY),
    prompt=Prompt(
        index=_MANY,
        line=_MANY,
        key=_LONG_KEY,
        input_ids=None,
        text=None,
        messages=[{"role": "user", "content": "word " * 2_000 + "w" * 4_000}],
        tools=None,
        sampling={},
        chat_template_kwargs={},
        prompt_sha256="9f" * 32,
    ),
    answer={
        **(OPENED.answer or {}),
        "text": "<think>" + "t" * 6_000 + "</think>" + "an answer of many words " * 2_000,
        "output_ids": [151_645] * 5_000,
        "gen_id": "g" * 300,
    },
)
