"""Spec files on the disk, and the settings of the machine."""

from pathlib import Path

import pytest

from app.core.spec import SpecError
from app.errors import InputError
from app.files.spec_files import load_spec, spec_errors_as_input
from app.settings import load_settings

TEXT = """[run]
name = "r"
server_urls = ["http://a:1"]
prompts_dir = "in"
output_dir = "/abs/out"
[class.any]
concurrency = 1
max_new_tokens = 2
[partition.p]
prompts = "p.jsonl"
"""


def test_paths_are_seen_from_the_folder_of_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())

    spec = load_spec(path)

    assert spec.prompts_dir == str(tmp_path / "in")
    assert spec.output_dir == "/abs/out"
    assert spec.partitions["p"].prompts == str(tmp_path / "p.jsonl")


def test_a_wrong_spec_is_an_error_of_the_input_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(TEXT.replace("concurrency = 1", "concurrency = 0"))

    with pytest.raises(InputError, match=r"run\.toml: \[class\.any\]\.concurrency: 0 is not"):
        load_spec(path)


def test_a_spec_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_bytes(b"[run]\nname = '\xff'\n")

    with pytest.raises(InputError, match=r"cannot read the spec .*gone\.toml"):
        load_spec(tmp_path / "gone.toml")
    with pytest.raises(InputError, match=r"odd\.toml is not UTF-8 at byte 14"):
        load_spec(tmp_path / "odd.toml")


def test_errors_of_flags_become_errors_of_the_input() -> None:
    with (
        pytest.raises(InputError, match="command line: --partition: wrong"),
        spec_errors_as_input(),
    ):
        raise SpecError("command line", ["--partition: wrong"])


def test_settings_come_from_the_environment_and_flags_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGWATCH_PORT", "9000")
    monkeypatch.setenv("LONGWATCH_HOME", "/tmp/h")  # noqa: S108 - only a text here
    monkeypatch.setenv("LONGWATCH_API_KEY", "do-not-show")

    settings = load_settings(port=9001, host=None)

    assert (settings.port, settings.host) == (9001, "127.0.0.1")
    assert settings.home == Path("/tmp/h")  # noqa: S108 - only a text here
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "do-not-show"
    assert "do-not-show" not in repr(settings)


def test_a_wrong_setting_names_its_variable_and_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGWATCH_TICK_S", "fast")

    with pytest.raises(InputError, match=r"LONGWATCH_TICK_S: .*valid number.*got 'fast'"):
        load_settings()
