"""`longwatch adopt`: looked at first, asked, then taken over; refused by name where it may not."""

from array import array
from pathlib import Path

import orjson
import pytest

from app.core.states import RunState
from app.ledger import runs, workers
from app.ledger.activity import Deed, latest
from app.ledger.counters import recount
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import decode
from tests.api.conftest import Door
from tests.api.home import Home
from tests.cli.conftest import Longwatch


def earlier(folder: Path, name: str = "B1_chat", n: int = 4) -> Path:
    path = folder / "old" / name / "raw_responses.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"id": f"a{k}", "output_ids": [k, 5], "finish_reason": "stop"} for k in range(n)]
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))
    return path


def test_check_says_what_is_there_and_writes_nothing(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    path = earlier(tmp_path)
    before = home.partition("B1_chat")

    told = longwatch("adopt", "night", str(tmp_path / "old"), "--check")

    assert (told.code, told.error) == (0, "")
    assert told.out.splitlines() == [
        f"B1_chat: {path}",
        "  4 lines read, 4 answers for 10 samples",
        "  4 answers without a prompt to compare: the id alone says whose they are",
        "no file for B2_code",
    ]
    assert home.partition("B1_chat") == before
    assert list(home.output_dir.rglob("*.jsonl")) == []


def test_yes_takes_over_and_the_activity_says_so(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    path = earlier(tmp_path)

    told = longwatch("adopt", str(tmp_path / "old"), "--yes")

    assert (told.code, told.error) == (0, "")
    assert "They will stand in run 1 as made under its settings (gen_id gen-one)" in told.out
    assert "B1_chat: took over 4 answers, 8 tokens" in told.out
    view = home.partition("B1_chat")
    assert (view.counts.ok, view.counts.pending, view.tokens.kept) == (4, 6, 8)
    assert recount(home.ledger, view.id) == []
    entry = latest(home.ledger, home.run_id, 1)[0]
    assert (entry.event, entry.detail) == ("adopt", f"B1_chat: 4 answers of {path}")
    again = longwatch("adopt", str(tmp_path / "old"), "--yes")
    assert "4 lines answered here already: they stay" in again.out
    assert "Nothing is there to take over." in again.out
    assert home.partition("B1_chat") == view


def test_without_anybody_to_ask_nothing_is_written(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    earlier(tmp_path)
    told = longwatch("adopt", "night", str(tmp_path / "old"))
    assert told.code == 1
    assert "nothing was written" in told.error
    assert home.partition("B1_chat").counts.pending == 10


def test_own_names_of_fields_and_files(longwatch: Longwatch, home: Home, tmp_path: Path) -> None:
    path = tmp_path / "old" / "b2.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'{"n": 3, "tokens": [1, 2], "why": "length", "output": "x"}\n')
    words = ("--by", "index", "--id-field", "n", "--ids-field", "tokens", "--finish-field", "why")
    told = longwatch(
        "adopt", "night", str(tmp_path / "old"), "--partition", "B2_code=b2.jsonl", *words, "--yes"
    )
    assert (told.code, told.error) == (0, "")
    assert home.partition("B2_code").counts.truncated == 1


def test_a_service_that_lives_is_named_and_a_check_works_beside_it(
    longwatch: Longwatch, home: Home, service: Door, tmp_path: Path
) -> None:
    earlier(tmp_path)
    told = longwatch("adopt", "night", str(tmp_path / "old"), "--yes")
    assert told.code == 1
    assert f"a service lives on {home.folder} (process " in told.error
    assert home.partition("B1_chat").counts.pending == 10
    assert longwatch("adopt", "night", str(tmp_path / "old"), "--check").code == 0


def test_what_a_dead_service_left_is_put_in_order_first(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    home.claim("B1_chat", 2)
    assert workers.living(home.ledger)
    earlier(tmp_path)
    told = longwatch("adopt", "night", str(tmp_path / "old"), "--yes")
    assert (told.code, workers.living(home.ledger)) == (0, [])
    assert home.partition("B1_chat").counts.ok == 4


def test_a_finished_run_and_prompts_that_are_still_read_are_refused(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    earlier(tmp_path)
    with home.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE partition SET intake = 'scanned'")
    told = longwatch("adopt", "night", str(tmp_path / "old"), "--yes")
    assert "the prompts of B1_chat are still being read (10 of 10 are ready)" in told.error
    deed = Deed(who="system", event="nothing left", run_id=home.run_id)
    state = runs.move_run(home.ledger, home.run_id, "nothing left", deed, home.clock.now())
    assert state is RunState.FINISHED
    told = longwatch("adopt", "night", str(tmp_path / "old"), "--yes")
    assert (told.code, "run 1 is finished" in told.error) == (1, True)


def test_texts_need_a_server_that_answers(longwatch: Longwatch, home: Home, tmp_path: Path) -> None:
    path = earlier(tmp_path)
    path.write_bytes(b'{"id": "a0", "response": "so it is"}\n')
    told = longwatch("adopt", "night", str(tmp_path / "old"), "--yes")
    assert told.code == 1
    assert "WARNING: 1 answer only as text" in told.out
    assert f"{home.server_url} does not answer" in told.error
    assert home.partition("B1_chat").counts.pending == 10


def test_ids_of_texts_come_from_the_runs_own_server(longwatch: Longwatch, tmp_path: Path) -> None:
    with SimulatorThread() as simulator:
        home = Home(tmp_path / "home", server_url=simulator.url)
        path = earlier(tmp_path)
        texts = ["so it is", "no"]
        lines = [{"idx": n, "response": text} for n, text in enumerate(texts)]
        path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))
        told = longwatch("adopt", "night", str(tmp_path / "old"), "--by", "index", "--yes")
    assert (told.code, told.error) == (0, "")
    (shard,) = (home.output_dir / "B1_chat").glob("responses-1-adopted-*.jsonl")
    records = [orjson.loads(line) for line in shard.read_bytes().splitlines()]
    assert [each["flags"] for each in records] == [["adopted", "adopted_text"]] * 2
    assert [decode(array("I", each["output_ids"])) for each in records] == texts
    home.ledger.close()


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("night", "no-such"), "no-such is no folder"),
        (("night", "."), "holds no answers of B1_chat, B2_code"),
        (("night", ".", "--by", "name"), '--by "name" is neither id nor index'),
        (("night", ".", "--partition", "B1_chat"), '--partition "B1_chat" is not NAME=FILE'),
        (("night", ".", "--partition", "B9=x"), "run 1 has no partition B9"),
        (("night", ".", "--partition", "B1_chat=x.jsonl"), "there is no such file"),
        (("nobody", "."), 'no run "nobody"'),
        (("night", "B1_chat", "."), "there are too many names: B1_chat"),
    ],
    ids=["folder", "nothing", "by", "form", "partition", "file", "run", "names"],
)
def test_wrong_words_are_told(
    longwatch: Longwatch,
    home: Home,
    words: tuple[str, ...],
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    told = longwatch("adopt", *words)
    assert told.code == 1
    assert told.error.startswith("error: ")
    assert shown in told.error
    assert home.partition("B1_chat").counts.pending == 10
