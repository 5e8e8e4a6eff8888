"""A spec that is good, and reading one, for the tests of specs."""

import pytest

from app.core.spec import RunSpec, SpecError
from app.core.spec_parse import parse_spec

GOOD = """
[run]
name = "synth_100k"
server_urls = ["http://localhost:8000/"]
prompts_dir = "prepared"
output_dir = "out"
token_budget = "80M"
[defaults]
temperature = 1.0
top_p = 0.95
chat_template_kwargs = { thinking = true }
stop_token_ids = []
samples_per_prompt = 2
max_samples = 7000
[class.short]
concurrency = 150
max_new_tokens = 10240
[class.long]
concurrency = 32
max_new_tokens = 16384
[partition.B1_glaive]
class = "short"
[partition.B2_opencodeinstruct]
class = "long"
token_budget = "10M"
max_samples = 70
max_new_tokens = 20_000
concurrency = 9
prompts = "elsewhere.jsonl"
"""


def parsed(text: str) -> RunSpec:
    return parse_spec(text, "synth.toml")


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        parsed(text)
    return caught.value.problems
