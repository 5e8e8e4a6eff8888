"""The order to extend: what it does, in which words it is refused, over a real ledger and files."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import httpx
import orjson
import pytest

from app import controls, sealing
from app.core.spec import LengthPolicy, to_json
from app.core.states import RunState
from app.core.types import Keep, PartitionId, ServerFacts
from app.errors import ConflictError, InputError, LongwatchError, NotFoundError
from app.extending import Longer, extend, job
from app.ledger import activity, extending, runs, shards
from app.ledger.counters import recount
from app.ledger.db import Ledger
from app.ledger.extending import Cut
from app.ledger.servers import remember_server
from tests.api.conftest import Door
from tests.api.cut_short import CUT, cut_short, lines_of, seal_all
from tests.api.home import Home

WHO = "operator"
PATH = "/api/v1/runs/night/partitions/B1_chat/extend"


def ordered(home: Home, n: int = 200, reason: str | None = None, name: str = "B1_chat") -> str:
    wanted = Longer(partition=name, max_new_tokens=n, reason=reason)
    return extend(home.ledger, home.run, wanted, who=WHO, now=home.clock.now()).sentence


def said_by_server(home: Home, **facts: object) -> None:
    stored = orjson.dumps(
        asdict(replace(ServerFacts(), **facts)),  # type: ignore[arg-type]  # named by the tests
        default=dict,
    )
    remember_server(home.ledger, home.server_url, stored.decode(), home.clock.now())


def with_spec(home: Home, **changes: object) -> None:
    spec = replace(home.spec("night"), **changes)  # type: ignore[arg-type]  # named by the tests
    with home.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE run SET spec_json = ?", (to_json(spec),))


def changed(home: Home, statement: str) -> None:
    with home.ledger.write() as connection:
        connection.exec_driver_sql(statement)


def test_truncated_answers_go_on_from_where_they_stopped(home: Home) -> None:
    cut_short(home, n=3)
    home.keep("B1_chat", 2)
    before = home.partition("B1_chat").tokens

    said = ordered(home)

    assert said == (
        'run 1 "night": B1_chat: max_new_tokens 100 -> 200;'
        " B1_chat: extend 3 truncated -> 3 pending again; 3 truncated answers of B1_chat go on"
        " up to 200 tokens, from the 297 they have"  # no end id is known: the last is made anew
    )
    partition = home.partition("B1_chat")
    assert partition.max_new_tokens == 200
    assert (partition.counts.truncated, partition.counts.pending) == (0, 8)
    assert partition.tokens == before
    assert recount(home.ledger, partition.id) == []
    claims = home.claim("B1_chat", 4)
    assert [list(claim.held) for claim in claims] == [[0] * 99, [1] * 99, [2] * 99, []]
    assert [claim.max_new_tokens for claim in claims[:3]] == [200] * 3
    newest = activity.latest(home.ledger, home.run_id, 2)
    assert [(entry.who, entry.event) for entry in newest] == [
        (WHO, "extend"),
        (WHO, "max_new_tokens"),
    ]


def test_a_known_end_id_lets_answers_keep_their_last_token(home: Home) -> None:
    cut_short(home, n=3)
    ended = Keep(state=CUT.state.OK, finish_reason='{"type":"stop","matched":1}')
    cut_short(home, n=1, tokens=5, outcome=ended)
    ordered(home)
    held = [len(claim.held) for claim in home.claim("B1_chat", 3)]
    assert held == [100, 99, 100]  # that of the second answer is the end id


def test_a_finished_run_is_opened_and_its_output_keeps_every_answer(home: Home) -> None:
    cut_short(home, n=3)
    home.keep("B1_chat", 7)
    home.keep("B2_code", 10)
    seal_all(home)
    sealed = lines_of(home, "B1_chat")[0].read_bytes()

    said = ordered(home)

    assert said.count("run: state finished -> running") == 1
    assert home.run.state is RunState.RUNNING
    partition = home.partition("B1_chat")
    assert partition.sealed_at is None
    assert lines_of(home, "B1_chat")[0].read_bytes() == sealed
    assert len(shards.valid_lines(home.ledger, partition.id, -1, 100)) == 10


def test_an_order_that_was_cut_off_is_given_again_and_does_the_rest(home: Home) -> None:
    cut_short(home, n=3)
    changed(home, "UPDATE partition SET max_new_tokens = 200")
    changed(home, "UPDATE sample SET max_new_tokens = NULL")
    assert "3 pending again" in ordered(home, 200)
    with pytest.raises(ConflictError, match="no truncated answer of it can go on"):
        ordered(home, 200)


def test_a_line_that_a_seal_has_moved_is_read_where_it_stands_now(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seal that comes between the place and the reading: a file that is gone, another offset."""
    cut_short(home, n=3)
    asked = shards.valid_lines(home.ledger, home.partition("B1_chat").id, -1, 10)
    home.leave()
    read = extending.truncated
    n_asked = 0

    def then_sealed(*words: Any) -> list[Cut]:
        nonlocal n_asked
        found, n_asked = read(*words), n_asked + 1
        if n_asked == 1:
            sealed(home)
        return found

    monkeypatch.setattr(extending, "truncated", then_sealed)
    assert "3 pending again" in ordered(home)
    moved = shards.valid_lines(home.ledger, home.partition("B1_chat").id, -1, 10)
    assert moved != asked
    assert recount(home.ledger, home.partition("B1_chat").id) == []


def test_a_sealed_file_that_is_replaced_between_two_readings_is_opened_anew(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first prompt is answered meanwhile: every line behind it stands elsewhere, same path."""
    first = home.claim("B1_chat", 1)
    cut_short(home, n=3)
    home.leave()
    sealed(home)
    read = extending.truncated
    n_asked = 0

    def one_by_one(
        ledger: Ledger, partition_id: PartitionId, after: int, _limit: int, reason: str | None
    ) -> list[Cut]:
        nonlocal n_asked
        n_asked += 1
        if n_asked == 2:  # the first line is read, its file is open
            assert [each.position for each in cut_short(home, n=1)] == [first[0].position]
            home.leave()
            sealed(home)
        return read(ledger, partition_id, after, 1, reason)

    monkeypatch.setattr(extending, "truncated", one_by_one)
    assert "3 truncated -> 3 pending again" in ordered(home)
    assert recount(home.ledger, home.partition("B1_chat").id) == []
    assert [list(claim.held) for claim in home.claim("B1_chat", 3)] == [
        [position] * 99 for position in (1, 2, 3)
    ]


def sealed(home: Home) -> None:
    partition, now = home.partition("B1_chat"), home.clock.now()
    sealing.seal(home.ledger, partition, home.output_dir, now, lambda _: None)


def test_what_stays_is_told_with_its_reason(home: Home) -> None:
    cut_short(home, n=1)
    cut_short(home, n=1, tokens=40)  # a limit of its own, below the partition's
    cut_short(home, n=1, gen_id="gen-old")
    clipped = replace(CUT, flags=("clipped",))
    cut_short(home, n=1, outcome=clipped)
    cut_short(home, n=1)
    cut_short(home, n=1)
    changed(home, "UPDATE sample SET max_new_tokens = 40 WHERE position = 1")
    changed(home, """UPDATE sample SET sampling_json = '{"regex": "a"}' WHERE position = 4""")
    changed(home, "UPDATE sample SET output_tokens = 99 WHERE position = 5")

    said = ordered(home)

    assert "extend 6 truncated -> 1 pending again" in said
    assert said.endswith(
        "5 answers stay: 1 cut by a limit of the prompt's own,"
        " 1 with no room left in the server's context, 1 made under other settings,"
        " 1 made with a penalty or a grammar, which cannot be continued,"
        " 1 whose line is not what the ledger says"
    )
    assert home.partition("B1_chat").counts.truncated == 5


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1] + b" ",
        lambda content: content.replace(b"-0000000001-", b"-0000000002-"),
        lambda content: content.replace(b'"prompt_sha256":"000', b'"prompt_sha256":"111'),
        lambda content: content.replace(b'"completion_tokens":100', b'"completion_tokens":101'),
    ],
)  # fmt: skip
def test_a_line_that_is_not_the_samples_is_not_used(
    home: Home, damage: Callable[[bytes], bytes]
) -> None:
    cut_short(home, n=1)
    (path,) = lines_of(home, "B1_chat")
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert path.read_bytes() != content
    assert "1 whose line is not what the ledger says" in ordered(home)
    assert home.partition("B1_chat").counts.truncated == 1


def test_only_answers_with_the_reason_go_on(home: Home) -> None:
    cut_short(home, n=1, outcome=replace(CUT, flags=("thinking not closed",)))
    cut_short(home, n=2)
    assert "1 truncated -> 1 pending again" in ordered(home, reason="thinking")
    assert home.partition("B1_chat").counts.truncated == 2


def test_a_reason_that_no_answer_has_is_refused_and_changes_nothing(home: Home) -> None:
    cut_short(home, n=1, outcome=replace(CUT, flags=("thinking not closed", "loop")))
    before = (home.partition("B1_chat"), activity.latest(home.ledger, home.run_id))
    with pytest.raises(InputError) as caught:
        ordered(home, reason="zzz")
    assert str(caught.value) == (
        'no truncated answer of B1_chat has a flag or reason that contains "zzz".'
        ' There are "loop", "thinking not closed"'
    )
    assert (home.partition("B1_chat"), activity.latest(home.ledger, home.run_id)) == before


def test_each_prompt_gets_what_the_context_leaves_it(home: Home) -> None:
    cut_short(home, n=3)
    said_by_server(home, context_tokens=202)  # 200 for prompt and answer; prompts have 4 tokens
    changed(home, "UPDATE sample SET prompt_tokens = 100 WHERE position = 1")
    said = ordered(home, 190)
    assert "1 prompt leaves less room than that in the server's context" in said
    assert "1 answer stays: 1 with no room left in the server's context" in said
    assert home.partition("B1_chat").counts.truncated == 1


def test_a_limit_above_the_context_is_taken_as_far_as_it_goes(home: Home) -> None:
    cut_short(home, n=1)
    said_by_server(home, context_tokens=202)
    assert "10 prompts leave less room than that" in ordered(home, 100_000)
    assert [claim.max_new_tokens for claim in home.claim("B1_chat", 2)] == [196, 196]


REFUSED: list[tuple[str, int, type[LongwatchError], str]] = [
    ("", 100, ConflictError, "B1_chat has max_new_tokens 100 already, and no truncated answer of"
     " it can go on: 2 answers stay: 2 cut at this very limit. Name a number above"
     " 100"),
    ("", 99, InputError, "max_new_tokens 99 is below the 100 that B1_chat has; extending never"
     " lowers it. Name a number above 100"),
    ("", 0, InputError, "max_new_tokens 0 is not a whole number from 1 to 10,000,000. B1_chat has"
     " 100 now; name a higher one"),
    ("", 10_000_001, InputError, "max_new_tokens 10,000,001 is not a whole number from 1 to"
     " 10,000,000. B1_chat has 100 now; name a higher one"),
    ("UPDATE partition SET intake = 'scanned', n_tokenized = 4", 200, ConflictError, "the prompts"
     " of B1_chat are still being read (4 are ready), so it is not known how long their answers"
     " may be. Extend it when all of them are ready"),
    ("UPDATE partition SET token_budget = 200", 200, ConflictError, "B1_chat has used 200 of its"
     " budget of 200 tokens, which leaves no room for longer answers. Raise it first: longwatch"
     " budget 1 B1_chat TOKENS"),
    ("UPDATE run SET token_budget = 200", 200, ConflictError, "run 1 has used 200 of its budget of"
     " 200 tokens, which leaves no room for longer answers. Raise it first: longwatch budget 1"
     " TOKENS"),
    ("UPDATE run SET token_budget = 300; UPDATE partition SET token_budget = 9000,"
     " budget_reached = 1", 200, ConflictError, "run 1 has used 200 of its budget of 300 tokens,"
     " which leaves no room for longer answers. Raise it first: longwatch budget 1 TOKENS"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "n", "kind", "words"), REFUSED)
def test_what_is_refused_is_told_and_changes_nothing(
    home: Home, statement: str, n: int, kind: type[LongwatchError], words: str
) -> None:
    cut_short(home, n=2)
    for one in filter(None, statement.split(";")):
        changed(home, one)
    before = (home.partition("B1_chat"), home.run, activity.latest(home.ledger, home.run_id))
    with pytest.raises(kind) as caught:
        ordered(home, n)
    assert str(caught.value) == words
    after = (home.partition("B1_chat"), home.run, activity.latest(home.ledger, home.run_id))
    assert after == before


def test_what_runs_with_penalties_is_refused_as_a_whole(home: Home) -> None:
    cut_short(home, n=2)
    with_spec(home, sampling={"repetition_penalty": 1.1})
    with pytest.raises(ConflictError) as caught:
        ordered(home)
    assert str(caught.value) == (
        "answers of run 1 are made with a penalty or a grammar, which starts afresh with each"
        " request: none of the 2 truncated answers of B1_chat can be continued. Start a run of its"
        " own with a higher max_new_tokens"
    )
    assert home.partition("B1_chat").max_new_tokens == 100


def test_a_limit_that_fits_no_prompt_is_refused_where_prompts_are_rejected_for_it(
    home: Home,
) -> None:
    cut_short(home, n=1)
    with_spec(home, length_policy=LengthPolicy.REJECT)
    said_by_server(home, context_tokens=202)
    with pytest.raises(InputError) as caught:
        ordered(home)
    assert str(caught.value) == (
        "max_new_tokens 200 leaves no room for any prompt of B1_chat in the context of 202."
        " Name at most 199"
    )


def test_an_unknown_partition_is_told_with_the_choices(home: Home) -> None:
    with pytest.raises(NotFoundError) as caught:
        ordered(home, name="B9")
    assert str(caught.value) == "run 1 has no partition B9. It has B1_chat, B2_code"


def test_with_nothing_truncated_the_limit_is_for_those_to_come(home: Home) -> None:
    home.keep("B1_chat", 3)
    assert "no truncated answer of B1_chat goes on; the limit is for those still to come" in (
        ordered(home)
    )
    assert home.claim("B1_chat", 1)[0].max_new_tokens == 200


def test_with_nothing_truncated_and_nothing_to_come_it_is_refused(home: Home) -> None:
    home.keep("B1_chat", 10)
    with pytest.raises(ConflictError) as caught:
        ordered(home)
    assert str(caught.value) == (
        "B1_chat has no truncated answer and no sample that is still to come; there is nothing to"
        " extend"
    )


def test_a_paused_or_stopped_run_is_extended_and_goes_on_when_it_is_resumed(home: Home) -> None:
    cut_short(home, n=2)
    home.leave()
    controls.stop(home.ledger, home.run, who=WHO, now=home.clock.now(), service_lives=False)
    assert "2 pending again" in ordered(home)
    assert home.run.state is RunState.STOPPED


def test_many_answers_are_moved_in_batches_of_bounded_size(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_short(home, n=10)
    sizes: list[int] = []
    go_on = extending.go_on

    def counted(*words: object) -> object:
        sizes.append(len(words[3]))  # type: ignore[arg-type]  # the batch
        return go_on(*words)  # type: ignore[arg-type]  # as they are

    monkeypatch.setattr(job, "_PAGE", 4)
    monkeypatch.setattr(extending, "go_on", counted)
    assert "10 pending again" in ordered(home)
    assert sizes == [4, 4, 2]


async def test_the_api_extends_by_name_or_number(
    client: httpx.AsyncClient, home: Home, door: Door
) -> None:
    cut_short(home, n=2)
    answer = await client.post(PATH, json={"max_new_tokens": 200})
    assert answer.status_code == 200
    assert answer.json()["changes"] == [
        {"target": "B1_chat", "what": "max_new_tokens", "old": "100", "new": "200"},
        {"target": "B1_chat", "what": "extend", "old": "2 truncated", "new": "2 pending again"},
    ]
    assert door.n_pokes == 1
    partition_id = home.partition("B2_code").id
    cut_short(home, "B2_code", n=1)
    path = f"/api/v1/runs/{home.run_id}/partitions/{partition_id}/extend"
    answer = await client.post(path, json={"max_new_tokens": 200, "reason": None})
    assert answer.status_code == 200
    assert home.partition("B2_code").counts.truncated == 0
    assert activity.latest(home.ledger, home.run_id, 1)[0].who == "operator (API)"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"max_new_tokens": 0}, 422),
        ({"max_new_tokens": "200"}, 422),
        ({"max_new_tokens": 200, "partition": "B1_chat"}, 422),
        ({"max_new_tokens": 50}, 422),
        ({"max_new_tokens": 100}, 409),
    ],
)
async def test_the_api_refuses_and_changes_nothing(
    client: httpx.AsyncClient, home: Home, door: Door, body: dict[str, object], status: int
) -> None:
    cut_short(home, n=2)
    before = home.partition("B1_chat")
    answer = await client.post(PATH, json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert home.partition("B1_chat") == before
    assert door.n_pokes == 0


async def test_the_api_asks_for_a_token(anybody: httpx.AsyncClient, home: Home) -> None:
    cut_short(home, n=2)
    answer = await anybody.post(PATH, json={"max_new_tokens": 200})
    assert answer.status_code == 401
    assert home.partition("B1_chat").max_new_tokens == 100
    assert runs.get_run(home.ledger, home.run_id).state is RunState.RUNNING
