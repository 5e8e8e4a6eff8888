"""The flags of `run` to a spec: the same words give the same run."""

from pathlib import Path
from typing import Any

import pytest
import typer.main

from app.cli.application import make_application
from app.cli.running import asked_spec
from app.core.spec import RunSpec
from app.errors import InputError

NEEDED = ("--output-dir", "prepared", "--server-url", "http://localhost:8000")


def asked(*words: str) -> RunSpec:
    group: Any = typer.main.get_command(make_application("run"))
    with group.commands["run"].make_context("run", list(words)) as context:
        return asked_spec(context, context.params["spec_path"])


def test_the_flags_of_the_old_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = asked(
        "--partition", "all", *NEEDED, "--short-concurrency", "150", "--short-max-tokens", "10240",
        "--long-concurrency", "32", "--long-max-tokens", "16384", "--max-samples", "7000",
    )  # fmt: skip
    assert spec.name == "prepared"
    assert spec.output_dir == spec.prompts_dir == str(tmp_path / "prepared")
    assert spec.server_urls == ("http://localhost:8000",)
    assert spec.partitions == {}
    assert spec.classes["short"].concurrency == 150
    assert spec.classes["long"].max_new_tokens == 16_384
    assert spec.default_max_samples == 7_000


def test_every_other_flag_reaches_the_spec() -> None:
    spec = asked(
        *NEEDED, "--name", "night", "--partition", "B1_x,B2_y", "--partition", "B3_z",
        "--short", "B2_y", "--prompts-dir", "/prompts", "--token-budget", "2.5M",
        "--temperature", "0.7", "--top-p", "0.95", "--top-k", "20", "--min-p", "0.1",
        "--samples-per-prompt", "4", "--max-attempts", "5", "--stop-grace-s", "10",
        "--chat-template-kwargs", '{"thinking": true}', "--server-url", "http://localhost:8001",
    )  # fmt: skip
    assert spec.name == "night"
    assert {name: one.class_name for name, one in spec.partitions.items()} == {
        "B1_x": "short", "B2_y": "short", "B3_z": "short",
    }  # fmt: skip
    assert spec.prompts_dir == "/prompts"
    assert spec.default_token_budget_tokens == 2_500_000
    assert spec.sampling == {"temperature": 0.7, "top_p": 0.95, "top_k": 20, "min_p": 0.1}
    assert spec.samples_per_prompt == 4
    assert spec.max_attempts == 5
    assert spec.stop_grace_s == 10.0
    assert spec.chat_template_kwargs == {"thinking": True}
    assert len(spec.server_urls) == 2


def test_zero_is_a_value_and_not_an_absence() -> None:
    assert asked(*NEEDED, "--temperature", "0").sampling == {"temperature": 0.0}


def test_the_environment_gives_flags_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGWATCH_OUTPUT_DIR", "/out")
    monkeypatch.setenv("LONGWATCH_SERVER_URL", "http://a:1 http://b:2")
    monkeypatch.setenv("LONGWATCH_TOKEN_BUDGET", "10M")
    spec = asked()
    assert spec.server_urls == ("http://a:1", "http://b:2")
    assert spec.default_token_budget_tokens == 10_000_000


SPEC = """
[run]
name = "night"
server_urls = ["http://localhost:8000"]
prompts_dir = "prompts"
output_dir = "out"
[class.long]
concurrency = 4
max_new_tokens = 100
"""


def test_a_spec_stands_beside_the_environment_but_not_beside_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "night.toml"
    path.write_text(SPEC)
    monkeypatch.setenv("LONGWATCH_OUTPUT_DIR", "/elsewhere")
    assert asked(str(path), "--accept-changes", "--no-web").output_dir == str(tmp_path / "out")
    with pytest.raises(InputError, match="--output-dir cannot stand beside"):
        asked(str(path), "--output-dir", "/elsewhere")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--token-budget", "ten"), "--token-budget"),
        (("--short-concurrency", "0"), "--short-concurrency: 0"),
        (("--top-p", "1.5"), "top_p"),
        (("--chat-template-kwargs", "thinking"), "not JSON"),
        (("--chat-template-kwargs", "[1]"), "not a JSON object"),
        (("--server-url", "ftp://x"), "--server-url"),
    ],
)
def test_a_wrong_flag_is_named(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        asked(*NEEDED, *words)
