"""Every knob of the simulated server, with the defaults of a healthy one.

Owns names and defaults only. Times named `_s` are real seconds; the engine's own seconds are
simulated and pass `time_factor` times as fast. `LIVE_SETTINGS` may change while the server runs.
"""

from dataclasses import dataclass, field, fields
from typing import Any

from app.simulator.answers import LengthModel
from app.simulator.tokenizer import DEFAULT_VOCABULARY_SIZE

# the last one thinks, and special texts in a text are their own ids
TEMPLATES = ("toy", "toy-strict", "toy-thinking")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings:
    host: str = "127.0.0.1"
    port: int = 30000
    keep_alive_s: int = 5
    api_key: str | None = None
    admin_api_key: str | None = None
    enable_metrics: bool = True

    version: str = "0.5.23"
    model_path: str = "/models/toy"
    served_model_name: str | None = None
    weight_version: str = "default"
    vocabulary_size: int = DEFAULT_VOCABULARY_SIZE
    context_length: int = 32_768
    template: str = "toy"
    tensor_parallel_ranks: int = 1

    lengths: LengthModel = field(default_factory=LengthModel)
    incremental: bool = False
    stream_interval_tokens: int = 1
    send_text: bool = True

    instant: bool = False
    time_factor: float = 1.0
    kv_tokens: int = 231_000
    max_running: int = 256
    max_queued: int | None = None
    prefill_tokens_per_s: float = 10_000.0
    step_base_s: float = 0.0104
    step_per_request_s: float = 0.00066
    step_per_kv_token_s: float = 0.05e-6
    prefix_cache: bool = True
    shortest_wake_s: float = 0.012

    poison_kills: bool = True
    reject_seen_rids: bool = False
    nonstream_disconnect_s: float = 4.0
    health_delay_s: float = 0.0
    info_delay_s: float = 0.0
    loading: bool = False
    unavailable: bool = False
    delay_scale: float = 1.0

    log_requests: bool = True
    log_limit: int = 20_000
    count_rows: bool = True

    def __post_init__(self) -> None:
        if self.template not in TEMPLATES:
            raise ValueError(f"template is {self.template!r}; use one of {', '.join(TEMPLATES)}")
        if self.time_factor <= 0:
            raise ValueError(f"time_factor is {self.time_factor}; it must be over 0")

    @property
    def model_name(self) -> str:
        return self.served_model_name or self.model_path

    @property
    def longest_request_tokens(self) -> int:
        """Return what prompt and answer together may reach, by context and by pool."""
        return min(self.context_length - 1, self.kv_tokens - 1)


FIXED_SETTINGS = frozenset({"host", "port", "keep_alive_s", "vocabulary_size", "log_limit"})
LIVE_SETTINGS = frozenset(f.name for f in fields(SimulatorSettings)) - FIXED_SETTINGS


def live_changes(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes if all may be made in mid-run; lengths may come as a plain object."""
    unknown = sorted(set(changes) - LIVE_SETTINGS)
    if unknown:
        raise ValueError(
            f"cannot set {', '.join(unknown)} while running; choose from "
            f"{', '.join(sorted(LIVE_SETTINGS))}"
        )
    lengths = changes.get("lengths")
    if isinstance(lengths, dict):
        return changes | {"lengths": LengthModel(**lengths)}
    return changes
