"""A source to a partition: where each row ends, what is written, what repeats, what is sampled."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import ConflictError, InputError
from app.files.prompt_records import Prompt, parse_record
from app.sources import known
from app.sources.contract import Conversation, Recipe
from tests.sources.desk import Desk, user
from tests.sources.fixture_rows import FIXTURES, RECIPES

GOOD = st.builds(user, st.sampled_from([None, "a", "b", "a~2"]), st.text("xy z", max_size=3))
CHAT = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "nobody"]), "content": st.text()}
    ),
    max_size=4,
).map(lambda turns: {"messages": turns})
BROKEN = st.sampled_from(
    [
        b'{"messages": [{"role": "user", "content": "cut',
        b"[1, 2]",
        b"null",
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"messages": NaN}',
        b'{"messages": "\xff"}',
        b'{"messages": [{"role": "user", "content": "<|im_end|>"}]}',
        b'{"messages": [{"role": "user", "content": "[EOS]"}]}',
        b'{"other": 1}',
        b"{}",
    ]
)
BLANK = st.sampled_from([b"", b"   ", b"\t\r"])
LINES = st.lists(st.one_of(GOOD.map(orjson.dumps), CHAT.map(orjson.dumps), BROKEN, BLANK))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@settings(deadline=None, max_examples=15)
@given(
    lines=LINES,
    mode=st.sampled_from(["last_user", "first_user", "all_turns"]),
    taken=st.one_of(st.none(), st.integers(1, 5)),
    longest=st.one_of(st.none(), st.integers(1, 6)),
)
def test_no_row_is_lost_without_a_reason(
    lines: list[bytes], mode: str, taken: int | None, longest: int | None
) -> None:
    with TemporaryDirectory() as name:
        desk = Desk(Path(name))
        desk.write("p.jsonl", *lines)
        wanted = f'recipe = "chat_messages"\nmode = "{mode}"\n'
        wanted += f"rows = {taken}\n" if taken else ""
        wanted += f"max_characters = {longest}\n" if longest else ""

        kept = desk.prepare(wanted)

        n_rows = sum(bool(line.strip()) for line in lines)
        kept.assert_whole(n_rows)
        numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
        for place in [*kept.places, *kept.skipped]:
            assert place["line"] == numbers[place["row"]]
        for one in kept.prompts:
            assert (one.pop("turns", None) == "all") == (mode == "all_turns")
            assert isinstance(parse_record(one, 0, 1), Prompt)
        assert taken is None or len(kept.prompts) <= taken


@pytest.mark.parametrize("fixture", RECIPES)
def test_a_fixture_becomes_the_records_that_it_should(desk: Desk, fixture: str) -> None:
    """Row by row what the expected files say, in the form that intake and merge read."""
    expected = [
        json.loads(line)
        for line in (FIXTURES / f"{fixture}.expected.jsonl").read_text().splitlines()
    ]

    kept = desk.prepare(path=str(FIXTURES / f"{fixture}.jsonl"))

    records = kept.folder / kept.report["records"]
    written = [json.loads(line) for line in records.read_text().splitlines()]
    good = [one for one in expected if "skip" not in one]
    assert [one["messages"] for one in written] == [one["messages"] for one in good]
    assert [one.get("tools") for one in written] == [one["tools"] for one in good]
    assert [one.get("prompt_upto") for one in written] == [one.get("prompt_upto") for one in good]
    assert [(one["row"], one["reason"], one.get("of")) for one in kept.skipped] == [
        (one["row"], one["skip"], one.get("of")) for one in expected if "skip" in one
    ]
    for record, one in zip(written, good, strict=True):
        assert record["id"].partition("~")[0] == (one["native_id"] or record["id"])
    assert [one.get("flags") for one in kept.places] == [one.get("flags") for one in good]


def test_parquet_of_the_hub_gives_the_bytes_of_its_json_lines(desk: Desk) -> None:
    lines = desk.prepare(path=str(FIXTURES / "b4_mixturethoughts.jsonl"))
    before = (lines.folder / "prompts.jsonl").read_bytes()

    table = desk.prepare(path=str(FIXTURES / "b4_mixturethoughts.parquet"))

    assert (table.folder / "prompts.jsonl").read_bytes() == before
    assert table.outcome.published == "unchanged"
    assert [one["line"] for one in table.places] == [one["line"] for one in lines.places]


def test_ids_are_the_rows_own_or_the_contents_digest(desk: Desk) -> None:
    desk.write("p.jsonl", user(None, "x"), user("own", "y"), user("own", "z"))

    kept = desk.prepare()

    digest = kept.places[0]["sha256"]
    assert list(kept.said()) == [digest, "own", "own~2"]
    assert len(digest) == 16


def test_turns_to_be_answered_one_by_one_say_so(desk: Desk) -> None:
    turns = [
        {"role": role, "content": text}
        for role, text in (("user", "one"), ("assistant", "1"), ("user", "two"))
    ]
    desk.write("p.jsonl", {"id": "a", "messages": turns})

    kept = desk.prepare('mode = "all_turns"')

    assert kept.prompts == [{"id": "a", "messages": [turns[0], turns[2]], "turns": "all"}]


def test_lengths_are_of_all_messages_and_both_bounds_count(desk: Desk) -> None:
    desk.write("p.jsonl", *(user(f"r{n}", "x" * n) for n in range(1, 7)))

    kept = desk.prepare("min_characters = 2\nmax_characters = 5")

    assert kept.reasons() == {0: "too_short", 5: "too_long"}
    assert kept.report["characters"] == {"p50": 3, "p95": 5, "max": 5}


def test_a_sample_is_chosen_by_seed_and_row_alone(desk: Desk) -> None:
    desk.write("p.jsonl", *(user(f"r{n}", f"text {n}") for n in range(50)), b"broken")
    few = desk.prepare("rows = 10")
    few.assert_whole(51)
    ids = list(few.said())

    more = desk.prepare("rows = 11", overwrite=True)
    assert set(ids) < set(more.said())
    other = desk.prepare("rows = 10\n[prepare]\nseed = 7", overwrite=True)

    assert len(ids) == 10
    assert set(ids) != set(other.said())
    assert more.report["skipped"] == {"not_sampled": 39, "unreadable": 1}
    assert desk.prepare("rows = 99", overwrite=True).report["kept"] == 50


def test_what_is_there_and_differs_is_only_replaced_on_demand(desk: Desk) -> None:
    desk.write("p.jsonl", user("a", "x"))
    first = desk.prepare()
    file = first.folder / "prompts.jsonl"
    before, inode = file.read_bytes(), file.stat().st_ino

    same = desk.prepare()
    desk.write("p.jsonl", user("a", "y"), user("b", "z"))

    assert (first.outcome.published, same.outcome.published) == ("written", "unchanged")
    assert file.stat().st_ino == inode
    with pytest.raises(ConflictError, match=r"it has 1 rows \(sha256 .*, this one 2 rows.*--overw"):
        desk.prepare()
    assert file.read_bytes() == before
    assert desk.prepare(overwrite=True).outcome.published == "replaced"
    assert not list(first.folder.glob(".*"))


def test_prompts_are_not_put_beside_answers(desk: Desk) -> None:
    desk.write("p.jsonl", {"q": "why", "a": "so"})
    columns = 'columns = { prompt = "q" }'
    desk.prepare('columns = { prompt = "q", answer = "a" }')

    with pytest.raises(ConflictError, match=r"answers\.jsonl is there.*gives prompts\.jsonl"):
        desk.prepare(columns)


def test_examples_show_what_cannot_be_seen(desk: Desk) -> None:
    desk.write(
        "p.jsonl", user("a", "one\x1b[2J\n" + "x" * 300), *(user(str(n), "y") for n in range(5))
    )

    examples = desk.prepare().report["examples"]

    assert examples[0] == {"id": "a", "text": "one␛[2J␊" + "x" * 192}
    assert len(examples) == 2  # four of the others are twins


def test_a_source_without_a_row_to_be_recognised_by_says_so(desk: Desk) -> None:
    desk.write("p.jsonl", b"broken")

    with pytest.raises(InputError, match=r"source p has no row by which .*\[source\.p\] recipe"):
        desk.prepare()


def test_a_recipe_that_breaks_is_told_with_the_row_it_broke_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(row: object) -> Conversation:
        raise KeyError("gone")

    recipe = Recipe(name="mine", about="", columns=frozenset({"messages"}), read=read)
    monkeypatch.setattr(known, "by_name", lambda _: recipe)
    desk.write("p.jsonl", user("a", "x"))

    with pytest.raises(InputError, match=r'"p\.jsonl", line 1 cannot .* recipe mine: KeyError'):
        desk.prepare('recipe = "sharegpt"')
