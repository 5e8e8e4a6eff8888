"""A spec written as TOML is read as the same spec."""

import pytest

from app.core.spec_parse import parse_spec
from app.core.spec_toml import to_toml

RUN = """
[run]
name = "a \\"b\\" \\\\ ü"
server_urls = ["http://localhost:8000", "http://localhost:8001"]
prompts_dir = "/a b"
output_dir = "/out"
"""
CLASSES = "[class.long]\nconcurrency = 32\nmax_new_tokens = 16384\n"
MORE = """
order = "sequence"
token_budget = "12345678"
deadline = "+6h"
stall_after_s = 5
think_open_ids = [1, 2]
length_policy = "reject"
detect_loops = false
slow_after_s = 100
auto_pause = false
[defaults]
temperature = 0.7
stop = ["\\n", "\\u0007", "<end>"]
logit_bias = { 5 = -1.5 }
chat_template_kwargs = { thinking = true, "a b" = [1, { x = 2 }] }
samples_per_prompt = 4
token_budget = "2.5M"
max_samples = 7000
"""
PARTITIONS = """
[class."1.5"]
concurrency = 1
max_new_tokens = 9
[partition."B1.x"]
class = "1.5"
token_budget = "10M"
prompts = "/elsewhere/p.jsonl"
[partition.B2_y]
class = "long"
concurrency = 3
max_new_tokens = 20
deadline = 2026-12-01T08:00:00
"""


@pytest.mark.parametrize("text", [RUN + CLASSES, RUN + MORE + CLASSES + PARTITIONS])
def test_what_was_written_is_read_as_the_same_spec(text: str) -> None:
    spec = parse_spec(text, "it")

    assert parse_spec(to_toml(spec), "it again") == spec


def test_what_is_as_it_would_be_anyway_is_not_written() -> None:
    written = to_toml(parse_spec(RUN + CLASSES, "it"))

    assert "stall_after_s" not in written
    assert "[defaults]" not in written
    assert 'token_budget = "10M"' in to_toml(parse_spec(RUN + CLASSES + PARTITIONS, "it"))
