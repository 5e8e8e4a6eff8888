"""`prepare` on the command line: what is told, before, of a look, and at the end."""

from pathlib import Path

import pytest

from app.cli.prepare_progress import drawing, summary
from app.sources.known import all_recipes
from app.sources.parallel import State, Step
from tests.cli.conftest import Longwatch
from tests.sources.desk import Desk, user


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_sources_become_partitions_and_are_told(desk: Desk, longwatch: Longwatch) -> None:
    desk.write("one.jsonl", user("a", "x" * 40), user("b", "x" * 40), user("c\x1b", "[EOS]"))
    spec = desk.spec('[prepare]\noutput_dir = "out"\n[source.B2_one]\npath = "one.jsonl"\n')

    told = longwatch("prepare", str(spec))

    assert (told.code, told.error) == (0, "")
    lines = told.out.splitlines()
    assert lines[0] == f"B2_one: 3 rows, 2 kept, {desk.folder / 'out/B2_one/prompts.jsonl'}"
    assert lines[1] == "  recipe chat_messages (recognised), mode last_user"
    assert lines[2:4] == ["  skipped: 1 duplicate", "  kept with: 1 bracket_special"]
    assert lines[4].startswith("  read: one.jsonl, 250 B, changed 20")
    assert lines[5:7] == [f"  a: {'x' * 40}", "  c?: [EOS]"]
    assert lines[-1].split() == [
        "B2_one",
        "3",
        "2",
        "1",
        "5",
        "40",
        "40",
        "chat_messages",
        "written",
    ]


def test_a_look_tells_recipes_and_problems_and_writes_nothing(
    desk: Desk, longwatch: Longwatch
) -> None:
    desk.write("good.jsonl", *(user(None, str(n)) for n in range(150)), b"broken")
    desk.write("odd.jsonl", {"what": 1})
    desk.write("empty.jsonl", user("a", " "))
    good = '[source.good]\npath = "good.jsonl"\n'
    bad = '[source.odd]\npath = "odd.jsonl"\n[source.blank]\npath = "empty.jsonl"\n'

    fine = longwatch("prepare", str(desk.spec(good)), "--check")
    wrong = longwatch("prepare", str(desk.spec(good + bad)), "--check")

    assert (fine.code, wrong.code) == (0, 1)
    row = ["good", "1", "chat_messages", "(recognised)", "last_user", "100", "of", "100"]
    assert row in [line.split() for line in fine.out.splitlines()]
    assert "error: source odd: no recipe fits the columns what" in wrong.out
    assert "error: source blank: none of the first 1 rows can be used (1 empty_prompt)" in wrong.out
    assert wrong.out.endswith("cannot be prepared: 2 errors.\n")
    assert not (desk.folder / "prepared").exists()


def test_a_look_says_that_prompts_are_there_already(desk: Desk, longwatch: Longwatch) -> None:
    desk.write("p.jsonl", user("a", "x"))
    there = desk.prepare().folder / "prompts.jsonl"

    told = longwatch("prepare", str(desk.folder / "sources.toml"), "--check")

    assert told.code == 0
    assert f"notice: source p: {there} is there: --overwrite replaces it" in told.out


def test_recipes_are_listed_with_their_columns(longwatch: Longwatch) -> None:
    told = longwatch("prepare", "--recipes")

    assert told.code == 0
    assert all(f"{name} (" in told.out for name in all_recipes())
    assert "  columns: domain, generation_algorithm, id, input, output\n" in told.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no spec is given. Write longwatch prepare SPEC.toml"),
        ("[source.p]\npath = 'gone.jsonl'", "[source.p].path: there is no"),
        ("[source.p]", "[source.p].path is missing"),
        ("[", "sources.toml: not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_read(
    desk: Desk, longwatch: Longwatch, text: str | None, said: str
) -> None:
    words = [] if text is None else [str(desk.spec(text))]

    told = longwatch("prepare", *words)

    assert (told.code, told.out) == (1, "")
    assert said in told.error
    assert not (desk.folder / "prepared").exists()


def test_progress_says_what_is_known() -> None:
    steps = [
        Step("a", 200, n_rows=10, done_bytes=200, state=State.READY),
        Step("b", 200, n_rows=1_500, done_bytes=51, state=State.WORKING),
        Step("hub", 0, n_rows=7, state=State.WORKING),
        Step("c", 50),
    ]

    assert summary(steps) == "1,517 rows read; 1 of 4 sources ended; b 25 %, hub"
    cells = [[str(cell) for cell in column.cells] for column in drawing(steps).columns]
    assert cells == [
        ["a", "b", "hub", "c"],
        ["100 %", "25 %", "", "0 %"],
        ["10", "1,500", "7", "0"],
        ["ready", "working", "working", "waiting"],
    ]
