"""Invented values of the pages beside the overview: a partition, samples, failures, servers.

Owns nothing that is measured: no figure here is of any run.
"""

from datetime import timedelta

from app.clock import to_ms
from app.core.spec_parse import parse_spec
from app.core.spread import Measure, Spread
from app.core.states import PartitionState, SampleState
from app.core.types import Counts, PartitionId, RunId, SampleId, Tokens
from app.core.views import PartitionView
from app.files.prompt_records import Prompt
from app.ledger.browsing import SampleEntry
from app.ledger.failures import Survey, Variant
from app.ledger.glimpses import Reason
from app.ledger.one_sample import AttemptEntry, SampleWhole
from app.web.gallery.invented import HOSTILE, NOW
from app.web.partition.reads import Read
from app.web.samples.reading import Opened
from app.web.server_page.cards import Told

_HOUR_MS = 3_600_000
SPEC = parse_spec(
    """
[run]
name = "synth_100k"
server_urls = ["http://localhost:30000"]
prompts_dir = "/data/prepared"
output_dir = "/data/prepared"
[class.short]
concurrency = 150
max_new_tokens = 10240
[partition.B1_part]
class = "short"
token_budget = "10M"
""",
    "night.toml",
)
VIEW = PartitionView(
    id=PartitionId(1),
    run_id=RunId(7),
    name="B1_part",
    class_name="short",
    state=PartitionState.ACTIVE,
    state_since=NOW - timedelta(hours=14),
    reason="",
    prompts_path="/data/prepared/B1_part/prompts.jsonl",
    intake="tokenized",
    own_concurrency=None,
    token_budget=10_000_000,
    goal_samples=None,
    max_new_tokens=10_240,
    counts=Counts(pending=6_000, running=64, ok=4_200, truncated=12),
    tokens=Tokens(received=6_300_000, kept=6_000_000, wasted=10_000, held=290_000),
    reserved_tokens=0,
    n_tokenized=10_276,
    token_file_tokens=2_400_000,
    budget_reached=False,
    sealed_at=None,
)
LENGTHS = Spread.of([300 + 37 * n % 9_000 for n in range(400)] + [10_240] * 12)
_FIRST, _LATENCY = (Spread.of([base + 13 * n for n in range(90)]) for base in (400, 9_000))
_HOURS = [to_ms(NOW) // _HOUR_MS * _HOUR_MS - n * _HOUR_MS for n in range(5, 0, -1)]

_FINISHES = {SampleState.OK: '{"type":"stop"}', SampleState.TRUNCATED: '{"type":"length"}'}


def sample(n: int, state: SampleState, reason: str | None = None, key: str = "") -> SampleEntry:
    """Return a sample in a list."""
    return SampleEntry(
        id=SampleId(n),
        partition_id=PartitionId(1),
        key=key or f"glaive-{n:06}",
        position=n,
        index=n,
        replica=0,
        state=state,
        prompt_tokens=212 + n,
        output_tokens=0 if reason else 1_000 + 97 * n,
        held_tokens=0,
        attempt=3 if reason else 1,
        charged=3 if reason else 0,
        finish_reason=_FINISHES.get(state),
        flags=(),
        reason=reason,
    )


SAMPLES = (
    sample(1, SampleState.OK),
    sample(2, SampleState.TRUNCATED),
    sample(3, SampleState.FAILED, "no answer within 600 s"),
    sample(4, SampleState.REJECTED, "the prompt has 40,112 tokens, the context 32,768"),
    sample(5, SampleState.OK, key=HOSTILE),
)
KNOWN = Read(
    view=VIEW,
    spec=SPEC,
    samples=SAMPLES,
    reasons=(Reason(state=SampleState.FAILED, reason="no answer within 600 s", n=7),),
    spreads={
        Measure.OUTPUT: LENGTHS,
        Measure.OUTPUT_CUT: Spread.of([10_240] * 12),
        Measure.PROMPT: Spread.of([180 + 7 * n % 900 for n in range(400)]),
        Measure.FIRST_TOKEN: _FIRST,
        Measure.LATENCY: _LATENCY,
    },
    hours={
        Measure.FIRST_TOKEN: [(hour, _FIRST) for hour in _HOURS],
        Measure.LATENCY: [(hour, _LATENCY) for hour in _HOURS],
    },
)
NOT_MEASURED = Read(view=VIEW, spec=SPEC)


def failed(n: int, reason: str, state: SampleState = SampleState.FAILED) -> Variant:
    """Return `n` failures of one reason."""
    return Variant(
        partition_id=PartitionId(1),
        state=state,
        reason=reason,
        n=n,
        is_least=n >= 10_000,  # noqa: PLR2004 - as many as a survey counts
        first=SampleId(3),
        last=SampleId(3 + n),
        first_at=NOW - timedelta(hours=3),
        last_at=NOW - timedelta(minutes=4),
    )


NO_FAILURES = Survey(variants=(), unfinished=())
FAILURES = Survey(
    variants=(
        failed(31, "the prompt has 40,112 tokens, the context 32,768", SampleState.REJECTED),
        failed(6, "no answer within 600 s"),
        failed(10_000, "HTTP 500: internal error"),
        failed(2, HOSTILE),
    ),
    unfinished=(),
)
OPENED = Opened(
    whole=SampleWhole(
        entry=SAMPLES[1],
        prompt_sha256="9f" * 32,
        max_new_tokens=10_240,
        n_checkpoints=0,
        checkpoint_tokens=0,
        attempts=(
            AttemptEntry(
                attempt=1,
                at=NOW - timedelta(hours=2),
                is_charged=False,
                tokens=4_096,
                reason="the server was restarted",
            ),
        ),
        line=None,
    ),
    partition=VIEW,
    before=SampleId(1),
    behind=SampleId(3),
    prompt=Prompt(
        index=2,
        line=3,
        key="glaive-000002",
        input_ids=None,
        text=None,
        messages=[{"role": "user", "content": f"What does this do?\n{HOSTILE}"}],
        tools=None,
        sampling={},
        chat_template_kwargs={},
        prompt_sha256="9f" * 32,
    ),
    no_prompt="",
    ids=None,
    no_ids="the token file is not here",
    answer={
        "text": f"<think>Let me see: \x1b[31m {HOSTILE}</think>It does nothing.",
        "output_ids": list(range(64)),
        "finish_reason": {"type": "length"},
        "segments": [
            {"from_token": 0, "rid": "r-1", "server": "http://localhost:30000", "gen_id": "g1"},
            {"from_token": 4_096, "rid": "r-2", "server": "http://localhost:30000", "gen_id": "g1"},
        ],
        "gen_id": "g1",
    },
    no_answer="",
)
TOLD = Told(
    facts={"model_path": "/models/m", "version": "0.5.23", "context_length_tokens": 32_768},
    checked_at=NOW - timedelta(minutes=3),
    last_good_at=NOW,
    happened=((12, NOW - timedelta(hours=1), "server away", "connection refused"),),
)
