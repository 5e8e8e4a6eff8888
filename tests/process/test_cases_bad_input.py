"""Whatever is given wrong: one clear message with place, value and remedy, and nothing is begun.

The table is of what people write. Each case is the whole program: exit code 1, nothing on the
terminal but the message, no run in the ledger, no file in the output, nothing sent.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.simulator.server import SimulatorThread
from tests.process.case_run import PARTITION, CaseRun

Change = tuple[str, str]
# A check that finds fault with prompts looks at the server too, to tell everything at once.
LOOKS = {"/tokenize", "/health", "/server_info", "/model_info", "/v1/models"}


@dataclass(frozen=True, slots=True)
class Mistake:
    """Texts of the good spec and what stands there instead; the words that the message holds."""

    changes: tuple[Change, ...]
    words: tuple[str, ...]


MISTAKES = {
    "no TOML": Mistake((("[run]", "[run"),), ("not valid TOML", "line 1")),
    "a misspelt table": Mistake((("[class.short]", "[clas.short]"),), ("[clas]", "did you mean")),
    "a misspelt key": Mistake(
        (('name = "test"', 'name = "test"\ntokenbudget = "1M"'),), ("tokenbudget", "token_budget")
    ),
    "a concurrency of none": Mistake(
        (("concurrency = 8", "concurrency = 0"),), ("[class.", "concurrency", "0")
    ),
    "a budget in words": Mistake(
        (('name = "test"', 'name = "test"\ntoken_budget = "ten"'),),
        ("token_budget", '"ten"', "10M"),
    ),
    "a temperature that no server takes": Mistake(
        (("[class.short]", "[defaults]\ntemperature = -1\n[class.short]"),),
        ("temperature", "-1", "0 to 100"),
    ),
    "a name for sampling from elsewhere": Mistake(
        (("[class.short]", "[defaults]\nseed = 7\n[class.short]"),), ("seed", "sampling_seed")
    ),
    "an address without a scheme": Mistake(
        (("http://", "localhost:"),), ("server_urls", "http://")
    ),
    "a host that nobody knows": Mistake(
        (("http://127.0.0.1:", "http://no-such-host.invalid:"),),
        ("no-such-host.invalid", "cannot be resolved", "Check the spelling"),
    ),
    "a partition name that is a path": Mistake(
        (("[class.short]", '[partition."../up"]\nclass = "short"\n[class.short]'),),
        ("../up", "letters, digits"),
    ),
    "a class that is not there": Mistake(
        (("[class.short]", '[partition.B1_p]\nclass = "shrt"\n[class.short]'),), ("shrt", "short")
    ),
    "a partition without prompts": Mistake(
        (("[class.short]", '[partition.B1_x]\nclass = "short"\n[class.short]'),), ("B1_x", "B1_p")
    ),
    "a folder of prompts that is not there": Mistake(
        (('prompts_dir = "prompts"', 'prompts_dir = "promts"'),), ("promts",)
    ),
}


N_AT_ONCE = 3


def assert_one_message(run: CaseRun, simulator: SimulatorThread, *flags: str) -> str:
    told = run.ask("run", *(flags or (str(run.spec),)), "--port", "0")
    assert told.returncode == 1, told.stdout
    assert told.stderr.startswith("error: ")
    assert told.stderr.count("\n") == 1, "more than one message"
    assert "internal error" not in told.stderr
    assert told.stdout == ""
    assert not run.home.exists()
    assert not run.output.exists()
    assert simulator.stats.http_requests.keys() <= LOOKS
    return told.stderr


# each is a process of its own; the words themselves have faster tests
@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(mistake, id=name, marks=pytest.mark.slow if n >= N_AT_ONCE else ())
        for n, (name, mistake) in enumerate(MISTAKES.items())
    ],
)
def test_a_wrong_spec_is_one_message(
    run: CaseRun, simulator: SimulatorThread, mistake: Mistake
) -> None:
    run.write_rows(["a0", "a1"])
    text = run.spec.read_text()
    for good, bad in mistake.changes:
        assert good in text
        text = text.replace(good, bad, 1)
    run.spec.write_text(text)

    told = assert_one_message(run, simulator)

    for word in mistake.words:
        assert word in told


def test_a_server_that_is_not_there_is_named(run: CaseRun, simulator: SimulatorThread) -> None:
    run.write_rows(["a0"])
    run.run_lines = "startup_wait_s = 0"
    run.server_url = "http://127.0.0.1:9"
    run.write_spec()
    told = assert_one_message(run, simulator)
    assert "http://127.0.0.1:9" in told


def _empty_folder(run: CaseRun) -> None:
    (run.folder / "prompts").mkdir()


def _torn_parquet(run: CaseRun) -> None:
    _empty_folder(run)
    (run.folder / "prompts" / f"{PARTITION}.parquet").write_bytes(b"PAR1 and no more")


def _foreign_zst(run: CaseRun) -> None:
    _empty_folder(run)
    (run.folder / "prompts" / f"{PARTITION}.jsonl.zst").write_bytes(b'{"id": "a0", "text": "x"}\n')


def _no_usable_record(run: CaseRun) -> None:
    _empty_folder(run)
    (run.folder / "prompts" / f"{PARTITION}.jsonl").write_bytes(b'{"id": "a0"}\n' * 40)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (_no_usable_record, ("none of the first 32 records", PARTITION, "line 1")),
        pytest.param(_empty_folder, ("holds no prompts", "prompts.jsonl"), marks=pytest.mark.slow),
        pytest.param(_torn_parquet, (f"{PARTITION}.parquet",), marks=pytest.mark.slow),
        pytest.param(_foreign_zst, (f"{PARTITION}.jsonl.zst",), marks=pytest.mark.slow),
    ],
    ids=["no usable record", "no prompts", "a torn parquet file", "plain text called zst"],
)
def test_prompts_that_cannot_be_read_are_one_message(
    run: CaseRun,
    simulator: SimulatorThread,
    write: Callable[[CaseRun], None],
    words: tuple[str, ...],
) -> None:
    write(run)
    told = assert_one_message(run, simulator)
    for word in words:
        assert word in told


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--token-budget", "1 million"), ("--token-budget", '"1 million"', "10M")),
        pytest.param(
            ("--short-concurrency", "0"), ("--short-concurrency", "0"), marks=pytest.mark.slow
        ),
        pytest.param(("--partition", "B9_none"), ("B9_none", PARTITION), marks=pytest.mark.slow),
        (("--top-p", "1.5"), ("top_p", "1.5", "at most 1")),
    ],
    ids=["budget", "concurrency", "partition", "top-p"],
)
def test_a_wrong_flag_is_one_message(
    run: CaseRun, simulator: SimulatorThread, flags: tuple[str, ...], words: tuple[str, ...]
) -> None:
    run.write_rows(["a0"])
    told = assert_one_message(
        run,
        simulator,
        *("--output-dir", str(run.output), "--prompts-dir", str(run.folder / "prompts")),
        *("--server-url", simulator.url, *flags),
    )
    for word in words:
        assert word in told
