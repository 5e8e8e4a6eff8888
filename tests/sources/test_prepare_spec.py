"""The spec of a preparation: defaults, and every problem at once with key, value and remedy."""

from pathlib import Path

import pytest

from app.core.spec import SpecError
from app.sources.contract import Mode
from app.sources.spec import HubSpec, SourceSpec, cores, parse_prepare_spec

FOLDER = Path("/data")


def problems(text: str) -> list[str]:
    with pytest.raises(SpecError) as refused:
        parse_prepare_spec(text, "s.toml", FOLDER)
    return list(refused.value.problems)


def test_what_is_left_out_has_its_default() -> None:
    spec = parse_prepare_spec('[source.B2_code]\npath = "raw/a.jsonl"', "s.toml", FOLDER)

    assert spec.output_dir == FOLDER / "prepared"
    assert (spec.seed, spec.deduplicate_across, spec.processes) == (0, False, cores())
    assert spec.sources == (SourceSpec(name="B2_code", paths=("/data/raw/a.jsonl",)),)


def test_everything_that_can_be_said_is_read() -> None:
    spec = parse_prepare_spec(
        """
        [prepare]
        output_dir = "/elsewhere"
        seed = 7
        deduplicate_across = true
        processes = 3
        [source.one]
        path = ["a.jsonl", "/b"]
        columns = { prompt = "question", id = "key" }
        mode = "all_turns"
        rows = 44_000
        min_characters = 2
        max_characters = 60_000
        keep_control_tokens = true
        [source.two]
        hub = "owner/name"
        config = "all"
        split = "train_sft"
        revision = "a1b2"
        recipe = "ultrachat"
        """,
        "s.toml",
        FOLDER,
    )

    one, two = spec.sources
    assert (spec.output_dir, spec.seed, spec.processes) == (Path("/elsewhere"), 7, 3)
    assert one == SourceSpec(
        name="one", paths=("/data/a.jsonl", "/b"), columns={"prompt": "question", "id": "key"},
        mode=Mode.ALL_TURNS, rows=44_000, min_characters=2, max_characters=60_000,
        keep_control_tokens=True,
    )  # fmt: skip
    assert two.hub == HubSpec(name="owner/name", config="all", split="train_sft", revision="a1b2")
    assert two.recipe == "ultrachat"


def test_all_problems_come_at_once_with_key_and_value() -> None:
    assert problems(
        """
        [prepair]
        [prepare]
        seed = -1
        rows = 5
        [source."a b"]
        path = ""
        [source.one]
        path = "x.jsonl"
        hub = "owner/name"
        recipe = "ultrachatt"
        mode = "last"
        processes = 2
        [source.two]
        split = "train"
        min_characters = 9
        max_characters = 3
        rows = 0
        colums = {}
        [source.three]
        hub = "no such name"
        columns = { prompt = 5, promt = "x" }
        recipe = "sharegpt"
        keep_control_tokens = "yes"
        """
    ) == [
        "[prepair] is not known here; did you mean prepare?",
        "[prepare].seed: -1 is not a whole number from 0 to 9,223,372,036,854,775,807",
        "[prepare].rows belongs in [source.<name>]",
        '[source.a b]: the partition name "a b" is not usable: take letters, digits, ".", "_" and'
        ' "-", at most 100, no "." at the start',
        '[source.a b].path: "" names no file',
        '[source.one].recipe: "ultrachatt" is not the name of a recipe; did you mean ultrachat?',
        '[source.one].mode: "last" is not one of last_user, first_user, all_turns;'
        " did you mean last_user?",
        "[source.one].hub: and path are both given; keep one",
        "[source.one].processes belongs in [prepare]",
        "[source.two].max_characters: 3 is below min_characters, which is 9",
        "[source.two].rows: 0 is not a whole number from 1 to 1,000,000,000",
        '[source.two].path is missing; give path = "raw/rows.jsonl" or hub = "owner/name"',
        "[source.two].split belongs to a source with hub; files have none",
        "[source.two].colums is not known here; did you mean columns?",
        "[source.three].columns.prompt: 5 is no name of a column",
        "[source.three].columns.promt is not known; did you mean prompt?",
        '[source.three].hub: "no such name" is not the name of a dataset such as "owner/name"',
        "[source.three].columns: and recipe are both given; keep one",
        '[source.three].keep_control_tokens: "yes" is neither true nor false',
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", '[source]: no source is defined; add [source.B2_code] with path = "raw/code.jsonl"'),
        ("source = 5", "[source] is not a table; write [source] on a line of its own"),
        ("[source]\np = 5", "[source.p]: 5 is not a table"),
        ("[source", "not valid TOML: "),
        ('[source.p]\npath = [1]', "[source.p].path: [1] is not a list of texts"),
        ('[source.p]\npath = "x"\ncolumns = 3', "[source.p].columns: 3 is not a table"),
        ('[source.p]\npath = "x"\ncolumns = {}', "[source.p].columns: name the column of prompt"),
    ],
)  # fmt: skip
def test_a_spec_that_says_nothing_usable_is_told(text: str, said: str) -> None:
    found = problems(text)

    assert found[0].startswith(said)
    assert len(found) == len(set(found))
