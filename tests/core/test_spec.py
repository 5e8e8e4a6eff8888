"""Specs: what a good one gives, and one message for each way of getting it wrong."""

import pytest

from app.core.spec import (
    ClassSpec,
    LengthPolicy,
    Order,
    PartitionSpec,
    RunSpec,
    SpecError,
    from_json,
    parse_tokens,
    resolve_partitions,
    to_json,
)
from app.core.spec_flags import RunFlags, spec_from_flags
from app.core.spec_parse import parse_spec
from app.core.spec_sampling import sampling_problems

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


def test_a_good_spec_gives_everything_it_says() -> None:
    spec = parsed(GOOD)

    assert spec.name == "synth_100k"
    assert spec.server_urls == ("http://localhost:8000",)
    assert (spec.prompts_dir, spec.output_dir) == ("prepared", "out")
    assert spec.sampling == {"temperature": 1.0, "top_p": 0.95}
    assert spec.chat_template_kwargs == {"thinking": True}
    assert spec.samples_per_prompt == 2
    assert (spec.token_budget_tokens, spec.default_max_samples) == (80_000_000, 7000)
    assert spec.classes["short"] == ClassSpec(concurrency=150, max_new_tokens=10240)
    assert spec.partitions["B2_opencodeinstruct"] == PartitionSpec(
        class_name="long",
        token_budget_tokens=10_000_000,
        max_samples=70,
        concurrency=9,
        max_new_tokens=20_000,
        prompts="elsewhere.jsonl",
    )
    assert (spec.order, spec.max_attempts, spec.stream_interval) == (Order.TOGETHER, 3, 64)
    assert (spec.request_timeout_s, spec.stop_grace_s) == (None, 0)
    assert (spec.startup_wait_s, spec.stall_after_s) == (300, 600)
    assert (spec.length_policy, spec.strict_ids) == (LengthPolicy.CLAMP, False)


def test_settings_of_the_run_are_taken() -> None:
    spec = parsed(
        GOOD.replace(
            "[defaults]",
            'order = "sequence"\nmax_attempts = 5\nrequest_timeout_s = 90.5\nstop_grace_s = 10\n'
            "startup_wait_s = 1\nstall_after_s = 30\nstream_interval = 128\n"
            "vocabulary_size = 163840\nthink_open_ids = 163606\nthink_close_ids = [163607]\n"
            'max_template_error_share = 0.9\nstrict_ids = true\nlength_policy = "reject"\n'
            "detect_loops = false\n[defaults]",
        )
    )

    assert (spec.order, spec.max_attempts, spec.request_timeout_s) == (Order.SEQUENCE, 5, 90.5)
    assert (spec.stop_grace_s, spec.startup_wait_s, spec.stall_after_s) == (10, 1, 30)
    assert (spec.stream_interval, spec.vocabulary_size) == (128, 163840)
    assert (spec.think_open_ids, spec.think_close_ids) == ((163606,), (163607,))
    assert (spec.max_template_error_share, spec.strict_ids) == (0.9, True)
    assert (spec.length_policy, spec.detect_loops) == (LengthPolicy.REJECT, False)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[defaults]", "[default]", '[default]: is not known here; did you mean "defaults"?'),
        (
            'name = "synth_100k"',
            'naem = "synth_100k"',
            "[run].name: is missing; it has no default",
        ),
        (
            'name = "synth_100k"',
            'name = "s"\nmax_atempts = 4',
            '[run].max_atempts: is not known here; did you mean "max_attempts"?',
        ),
        ('name = "synth_100k"', "name = 5", "[run].name: 5 is not a text with something in it"),
        ('"out"', '" "', '[run].output_dir: " " is not a text with something in it'),
        (
            '["http://localhost:8000/"]',
            "[]",
            '[run].server_urls: is missing; give a list such as ["http://localhost:30000"]',
        ),
        (
            '["http://localhost:8000/"]',
            "[5]",
            "[run].server_urls: [5] is not a list of texts",
        ),
        (
            "http://localhost:8000/",
            "localhost:8000",
            '[run].server_urls: "localhost:8000" is not an address of a server; '
            'write http://host:port or https://host:port; did you mean "http://localhost:8000"?',
        ),
        (
            "http://localhost:8000/",
            "http://localhost:8000/v1",
            '[run].server_urls: "http://localhost:8000/v1" has more than host and port; '
            'write "http://localhost:8000"',
        ),
        (
            "http://localhost:8000/",
            "http://localhost:99999",
            '[run].server_urls: "http://localhost:99999" has no usable port; '
            "write http://host:port or https://host:port",
        ),
        (
            "http://localhost:8000/",
            "ftp://localhost",
            '[run].server_urls: "ftp://localhost" is not an address of a server; '
            "write http://host:port or https://host:port",
        ),
        (
            "http://localhost:8000/",
            "http://me:secret@localhost:8000",
            "[run].server_urls: an address must not hold a login; take it out; "
            "the server's key comes from LONGWATCH_API_KEY",
        ),
        (
            '["http://localhost:8000/"]',
            '["http://a:1", "http://a:1/"]',
            '[run].server_urls: "http://a:1" is given twice; keep one',
        ),
        (
            '"80M"',
            '"80 million"',
            '[run].token_budget: "80 million" is not a number of tokens; write a whole number, '
            'or one with k, M or G: 250000, "800k", "10M", "2.5M"',
        ),
        (
            '"80M"',
            '"80M"\nmax_attempts = 0',
            "[run].max_attempts: 0 is not a whole number from 1 to 100",
        ),
        (
            '"80M"',
            '"80M"\nmax_attempts = true',
            "[run].max_attempts: true is not a whole number from 1 to 100",
        ),
        (
            '"80M"',
            '"80M"\nstall_after_s = "long"',
            '[run].stall_after_s: "long" is not a number from 1 to 2.592e+06',
        ),
        (
            '"80M"',
            '"80M"\norder = "togehter"',
            '[run].order: "togehter" is not one of together, sequence; did you mean "together"?',
        ),
        (
            '"80M"',
            '"80M"\nstrict_ids = "yes"',
            '[run].strict_ids: "yes" is neither true nor false',
        ),
        (
            '"80M"',
            '"80M"\nthink_close_ids = ["</think>"]',
            "[run].think_close_ids: ['</think>'] is not a list of token ids",
        ),
        (
            '"80M"',
            '"80M"\nmax_template_error_share = nan',
            "[run].max_template_error_share: nan is not a number from 0 to 1",
        ),
        (
            "top_p = 0.95",
            "top_p = 1.5",
            "[defaults].top_p: 1.5 is not a number above 0, at most 1",
        ),
        (
            "top_p = 0.95",
            "top_pp = 1",
            '[defaults].top_pp: is not a sampling parameter; did you mean "top_p"?',
        ),
        (
            "samples_per_prompt = 2",
            "sample_per_prompt = 2",
            "[defaults].sample_per_prompt: is not a sampling parameter; "
            'did you mean "samples_per_prompt"?',
        ),
        ("top_p = 0.95", "n = 4", "[defaults].n: is not sent; set samples_per_prompt"),
        (
            "top_p = 0.95",
            "max_tokens = 4",
            '[defaults].max_tokens: is called "max_new_tokens" and belongs to a class '
            "or a partition",
        ),
        (
            "{ thinking = true }",
            "true",
            "[defaults].chat_template_kwargs: true is not a table such as { thinking = true }",
        ),
        (
            "samples_per_prompt = 2",
            "samples_per_prompt = 0",
            "[defaults].samples_per_prompt: 0 is not a whole number from 1 to 1000",
        ),
        (
            "concurrency = 150",
            'concurrency = "auto"',
            '[class.short].concurrency: "auto" is not available yet; give a number such as 32',
        ),
        (
            "concurrency = 150\n",
            "",
            "[class.short].concurrency: is missing; give a whole number from 1 to 10000",
        ),
        (
            "concurrency = 150",
            "concurency = 150\nconcurrency = 1",
            '[class.short].concurency: is not known here; did you mean "concurrency"?',
        ),
        (
            'class = "long"',
            'class = "lnog"',
            '[partition.B2_opencodeinstruct].class: there is no [class.lnog]; did you mean "long"?',
        ),
        (
            "max_samples = 70\n",
            "max_samples = -1\n",
            "[partition.B2_opencodeinstruct].max_samples: -1 is not a whole number "
            "from 1 to 1000000000",
        ),
        (
            "[partition.B1_glaive]",
            '[partition."../x"]',
            '[partition.../x]: the partition name "../x" is not usable: take letters, digits, '
            '".", "_" and "-", at most 100, no "." at the start',
        ),
        (
            "[partition.B1_glaive]",
            "[partition]\nB9 = 3\n[partition.B1]",
            "[partition.B9]: 3 is not",
        ),
        ("[class.short]", "[class]\nmedium = 3\n[class.short]", "[class.medium]: 3 is not a table"),
    ],
)
def test_each_mistake_has_its_own_message(old: str, new: str, problem: str) -> None:
    assert old in GOOD

    problems = problems_of(GOOD.replace(old, new, 1))

    assert any(one.startswith(problem) for one in problems), problems


def test_a_syntax_error_names_its_line() -> None:
    (problem,) = problems_of('[run]\nname = "a"\nserver_urls = [\n')

    assert problem.startswith("not valid TOML: ")
    assert "line " in problem or "end of document" in problem


def test_all_problems_are_told_at_once() -> None:
    text = GOOD.replace("150", "0").replace("0.95", "7").replace('"out"', "1")

    with pytest.raises(SpecError) as caught:
        parsed(text)

    assert str(caught.value) == (
        "synth.toml: 3 problems\n"
        "  - [class.short].concurrency: 0 is not a whole number from 1 to 10000\n"
        "  - [run].output_dir: 1 is not a text with something in it\n"
        "  - [defaults].top_p: 7 is not a number above 0, at most 1"
    )


def test_an_empty_spec_says_what_is_needed() -> None:
    assert problems_of("") == (
        "[class]: no class is defined; add [class.long] with concurrency = 32 "
        "and max_new_tokens = 16384",
        "[run].name: is missing; it has no default",
        '[run].server_urls: is missing; give a list such as ["http://localhost:30000"]',
        "[run].prompts_dir: is missing; it has no default",
        "[run].output_dir: is missing; it has no default",
    )


def test_a_table_that_is_no_table_is_said() -> None:
    assert "[run]: is not a table; write [run] on a line of its own" in problems_of("run = 1")


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        ("10M", 10_000_000),
        ("2.5M", 2_500_000),
        ("800k", 800_000),
        ("800K", 800_000),
        ("1G", 1_000_000_000),
        (" 1_000 ", 1000),
        ("0.001k", 1),
        (12, 12),
    ],
)
def test_numbers_of_tokens(written: object, tokens: int) -> None:
    assert parse_tokens(written) == tokens


@pytest.mark.parametrize(
    "written", ["", "M", "10 million", "-5", "1.5", "0", 0, "10MB", "1e6", "1,000", 1.5, True, None]
)
def test_what_is_no_number_of_tokens_is_explained(written: object) -> None:
    with pytest.raises(ValueError, match=r'write a whole number, or one with k, M or G: .*"2\.5M"'):
        parse_tokens(written)


def test_a_stored_spec_comes_back_as_it_was() -> None:
    spec = parsed(GOOD.replace("[defaults]", "think_open_ids = [1, 2]\n[defaults]"))

    assert from_json(to_json(spec)) == spec


def test_a_stored_spec_of_a_later_version_can_be_read() -> None:
    spec = parsed(GOOD)

    assert from_json(to_json(spec).replace('{"name"', '{"from_the_future": 1, "name"')) == spec


def test_limits_are_filled_in_from_class_and_defaults() -> None:
    resolved = resolve_partitions(parsed(GOOD), [])

    assert list(resolved) == ["B1_glaive", "B2_opencodeinstruct"]
    short, long = resolved.values()
    assert (short.max_new_tokens, short.max_samples, short.token_budget_tokens) == (
        10240,
        7000,
        None,
    )
    assert (long.max_new_tokens, long.max_samples, long.token_budget_tokens) == (
        20_000,
        70,
        10_000_000,
    )
    assert (short.concurrency, long.concurrency) == (None, 9)


def test_without_partitions_all_that_are_found_run() -> None:
    spec = parsed(GOOD[: GOOD.index("[partition")])

    resolved = resolve_partitions(spec, ["B1_glaive", "B2_x", "B6_y"])

    assert {name: one.class_name for name, one in resolved.items()} == {
        "B1_glaive": "short",
        "B2_x": "long",
        "B6_y": "short",
    }


def test_the_only_class_is_everybody_s() -> None:
    text = GOOD[: GOOD.index("[class")] + "[class.any]\nconcurrency = 2\nmax_new_tokens = 3\n"

    named = parsed(text + "[partition.p]\n")
    found = resolve_partitions(parsed(text), ["q"])

    assert named.partitions["p"].class_name == "any"
    assert found["q"].class_name == "any"


def test_a_class_that_cannot_be_told_is_asked_for() -> None:
    text = GOOD[: GOOD.index("[partition")].replace("class.short", "class.quick")

    assert problems_of(text + "[partition.p]\n") == (
        "[partition.p].class: is missing; choose one of quick, long",
    )
    with pytest.raises(SpecError, match=r"partition q has no class; add \[partition\.q\]"):
        resolve_partitions(parsed(text), ["q"])


def test_the_flags_of_the_old_job_give_the_same_run() -> None:
    spec = spec_from_flags(
        RunFlags(
            partitions=["all"],
            output_dir="/data/prepared",
            server_urls=["http://localhost:8000"],
            short_concurrency=150,
            short_max_tokens=10240,
            long_concurrency=32,
            long_max_tokens=16384,
            max_samples=7000,
            token_budget="10M",
            short=["B9_new"],
        )
    )

    assert (spec.name, spec.prompts_dir) == ("prepared", "/data/prepared")
    assert spec.partitions == {}
    resolved = resolve_partitions(spec, ["B1_a", "B2_b", "B9_new"])
    assert [one.class_name for one in resolved.values()] == ["short", "long", "short"]
    assert [one.max_new_tokens for one in resolved.values()] == [10240, 16384, 10240]
    assert {one.max_samples for one in resolved.values()} == {7000}
    assert {one.token_budget_tokens for one in resolved.values()} == {10_000_000}
    assert from_json(to_json(spec)) == spec


def test_named_partitions_of_the_flags_are_kept_in_order_each_once() -> None:
    spec = spec_from_flags(
        RunFlags(
            partitions=["B7_x,B2_y", "B7_x"],
            output_dir="out",
            prompts_dir="in",
            server_urls=["http://a:1"],
            name="mine",
        )
    )

    assert list(spec.partitions) == ["B7_x", "B2_y"]
    assert [one.class_name for one in spec.partitions.values()] == ["short", "long"]
    assert (spec.name, spec.prompts_dir, spec.output_dir) == ("mine", "in", "out")


def test_all_wrong_flags_are_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        spec_from_flags(
            RunFlags(
                partitions=["a b"],
                output_dir="",
                server_urls=["a:1"],
                short_concurrency=0,
                max_samples=0,
                token_budget="much",
                sampling={"temperature": -1},
            )
        )

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "--server-url",
        "--short-concurrency",
        "--max-samples",
        "sampling temperature",
        "--token-budget",
        "--partition",
        "--output-dir",
    ]


@pytest.mark.parametrize(
    "sampling",
    [
        {"top_k": -1},
        {"top_k": 20, "min_p": 0, "repetition_penalty": 1.1},
        {"stop": "END", "stop_token_ids": [1], "ignore_eos": False},
        {"stop": ["a"] * 32, "logit_bias": {"5": -1.5}, "sampling_seed": -3},
    ],
)
def test_what_a_server_takes_passes(sampling: dict[str, object]) -> None:
    assert sampling_problems(sampling) == []


@pytest.mark.parametrize(
    "sampling",
    [
        {"top_k": 0},
        {"top_k": 1.5},
        {"temperature": "hot"},
        {"temperature": True},
        {"repetition_penalty": 0},
        {"stop": ["a"] * 33},
        {"stop": [""]},
        {"stop_token_ids": 5},
        {"stop_token_ids": [-1]},
        {"logit_bias": {"a": 1}},
        {"seed": 5},
        {"regex": "a", "ebnf": "b"},
    ],
)
def test_what_a_server_refuses_does_not_pass(sampling: dict[str, object]) -> None:
    assert len(sampling_problems(sampling)) == 1
