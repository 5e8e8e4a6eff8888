"""One message for each way of getting a spec wrong, and all of them at once."""

import pytest

from app.core.spec import SpecError
from app.core.spec_parse import _OF_RUN
from tests.core.specs import GOOD, parsed, problems_of


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[defaults]", "[default]", "[default] is not known here; did you mean defaults?"),
        (
            'name = "synth_100k"',
            'naem = "synth_100k"',
            "[run].name is missing; it has no default",
        ),
        (
            'name = "synth_100k"',
            'name = "s"\nmax_atempts = 4',
            "[run].max_atempts is not known here; did you mean max_attempts?",
        ),
        ('name = "synth_100k"', "name = 5", "[run].name: 5 is not a text with something in it"),
        ('"out"', '" "', '[run].output_dir: " " is not a text with something in it'),
        (
            '["http://localhost:8000/"]',
            "[]",
            '[run].server_urls is missing; give a list such as ["http://localhost:30000"]',
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
            '[run].stall_after_s: "long" is not a number from 1 to 2,592,000',
        ),
        (
            '"80M"',
            '"80M"\norder = "togehter"',
            '[run].order: "togehter" is not one of together, sequence; did you mean together?',
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
            "[defaults].top_pp is not a sampling parameter; did you mean top_p?",
        ),
        (
            "samples_per_prompt = 2",
            "sample_per_prompt = 2",
            "[defaults].sample_per_prompt is not a sampling parameter; "
            "did you mean samples_per_prompt?",
        ),
        ("top_p = 0.95", "n = 4", "[defaults].n is not sent; set samples_per_prompt"),
        (
            "top_p = 0.95",
            "max_tokens = 4",
            '[defaults].max_tokens is called "max_new_tokens" and belongs to a class '
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
            "[defaults].samples_per_prompt: 0 is not a whole number from 1 to 1,000",
        ),
        (
            "concurrency = 150",
            'concurrency = "auto"',
            '[class.short].concurrency: "auto" is not available yet; give a number such as 32',
        ),
        (
            "concurrency = 150\n",
            "",
            "[class.short].concurrency is missing; give a whole number from 1 to 10,000",
        ),
        (
            "concurrency = 150",
            "concurency = 150\nconcurrency = 1",
            "[class.short].concurency is not known here; did you mean concurrency?",
        ),
        (
            'class = "long"',
            'class = "lnog"',
            "[partition.B2_opencodeinstruct].class: there is no [class.lnog]; did you mean long?",
        ),
        (
            "max_samples = 70\n",
            "max_samples = -1\n",
            "[partition.B2_opencodeinstruct].max_samples: -1 is not a whole number "
            "from 1 to 1,000,000,000",
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
        (
            'name = "synth_100k"',
            'name = "s"\nsamples_per_prompt = 4',
            "[run].samples_per_prompt belongs in [defaults]",
        ),
        (
            "top_p = 0.95",
            "startup_wait_s = 4",
            "[defaults].startup_wait_s belongs in [run]",
        ),
        (
            "concurrency = 150",
            "concurrency = 150\nmax_samples = 1",
            "[class.short].max_samples belongs in [defaults] or [partition.<name>]",
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


def test_one_that_is_nested_without_end_is_a_problem_too() -> None:
    (problem,) = problems_of("a = " + "[" * 50_000)

    assert problem.startswith("not valid TOML: ")


def test_a_name_that_cannot_be_shown_is_refused() -> None:
    problems = problems_of(GOOD.replace('name = "', 'name = "\\u202e', 1))

    assert any("U+202E" in one for one in problems), problems


def test_all_problems_are_told_at_once() -> None:
    text = GOOD.replace("150", "0").replace("0.95", "7").replace('"out"', "1")

    with pytest.raises(SpecError) as caught:
        parsed(text)

    assert str(caught.value) == (
        "synth.toml: 3 problems\n"
        "  - [class.short].concurrency: 0 is not a whole number from 1 to 10,000\n"
        "  - [run].output_dir: 1 is not a text with something in it\n"
        "  - [defaults].top_p: 7 is not a number above 0, at most 1"
    )


def test_an_empty_spec_says_what_is_needed() -> None:
    assert problems_of("") == (
        "[class]: no class is defined; add [class.long] with concurrency = 32 "
        "and max_new_tokens = 16384",
        "[run].name is missing; it has no default",
        '[run].server_urls is missing; give a list such as ["http://localhost:30000"]',
        "[run].prompts_dir is missing; it has no default",
        "[run].output_dir is missing; it has no default",
    )


def test_a_table_that_is_no_table_is_said() -> None:
    assert "[run] is not a table; write [run] on a line of its own" in problems_of("run = 1")


def test_a_word_that_resembles_no_choice_is_told_once_what_there_is() -> None:
    problems = problems_of(GOOD.replace('"80M"', '"80M"\norder = "sideways"', 1))

    assert problems == ('[run].order: "sideways" is not one of together, sequence',)


@pytest.mark.parametrize("key", sorted(_OF_RUN))
def test_every_key_that_is_said_to_belong_in_run_is_known_there(key: str) -> None:
    problems = problems_of(f"[run]\n{key} = []\n")

    assert not [one for one in problems if one.startswith(f"[run].{key} is not known")]
    assert f"[defaults].{key} belongs in [run]" in problems_of(f"[defaults]\n{key} = []\n")
