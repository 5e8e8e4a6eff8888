"""Finished work is taken over once, as our own answers stand; whatever does not fit is left."""

import threading
from collections.abc import Sequence

import pytest

from app import sealing
from app.adopting import told_look
from app.core.adopting import Left
from app.core.spread import Measure
from app.errors import ConflictError
from app.extending import Longer, extend
from app.files.earlier_lines import Fields
from app.ledger import measures, workers
from app.ledger.counters import recount
from app.recovery import check_files
from app.sglang.client import ServerClient
from tests import books
from tests.adopting.earlier import LIMIT, Earlier, N
from tests.ledger.hand import Hand
from tests.stage import GEN_ID


async def test_the_run_goes_on_behind_what_was_taken_over(earlier: Earlier) -> None:
    earlier.write(*(earlier.line(n) for n in range(7)))

    taken = _in_thread(earlier)

    assert taken == 7
    before = earlier.lines()
    assert sorted(before) == sorted(f"row{n}" for n in range(7))
    assert all(line["flags"] == ["adopted"] for line in before.values())
    assert earlier.stage.partition().counts.ok == 7
    await earlier.stage.work()
    after = earlier.lines()
    assert len(after) == N
    assert {key: after[key] for key in before} == before
    tokens = earlier.stage.partition().tokens
    made = sum(after[f"row{n}"]["completion_tokens"] for n in range(7, N))
    assert earlier.simulator.stats.generated_tokens == made
    assert tokens.received - made == sum(len(earlier.ids(n)) for n in range(7))


def _in_thread(earlier: Earlier) -> int:
    """Take over beside the test's event loop, as the command line does without one."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(earlier.take().n))
    thread.start()
    thread.join(30)
    return found[0]


def test_lines_that_do_not_fit_are_counted_and_shown(earlier: Earlier) -> None:
    earlier.write(
        earlier.line(0),
        earlier.line(1, output_ids=[9]),
        earlier.line(1),
        earlier.line(1, output_ids=[], finish_reason="abort"),
        earlier.line(2, id="nobody"),
        earlier.line(3, id=None, key=3),
        earlier.line(4, output_ids=[]),
        earlier.line(5, finish_reason="abort"),
        earlier.line(6, output_ids=list(range(LIMIT + 1))),
        earlier.line(7, prompt="what nobody asked"),
        earlier.line(8, output_ids=[1, -1]),
        earlier.line(9, gen_id="another"),
        tail=b'{"id": "row10", "output_ids": [1, 2, 3',
    )

    looked = earlier.look()

    assert sorted(looked.chosen.values()) == [1, 3]
    assert looked.left == {
        Left.DOUBLED: 1,
        Left.NO_ANSWER: 2,
        Left.UNKNOWN: 1,
        Left.NO_ID: 1,
        Left.NOT_ENDED: 1,
        Left.TOO_LONG: 1,
        Left.OTHER_PROMPT: 1,
        Left.BAD_IDS: 1,
        Left.OTHER_SETTINGS: 1,
        Left.TORN: 1,
    }
    said = "\n".join(told_look(looked))
    assert "13 lines read, 2 answers for 12 samples" in said
    assert f"    {earlier.path}:5: nobody" in said
    assert f"    {earlier.path}:13: 38 bytes without an end" in said
    assert earlier.take(looked).n == 2
    assert earlier.lines()["row1"]["output_ids"] == earlier.ids(1)


def test_given_again_nothing_is_added(earlier: Earlier) -> None:
    earlier.write(*(earlier.line(n) for n in range(5)))
    earlier.take()
    before = earlier.lines(), earlier.stage.partition()

    looked = earlier.look()
    taken = earlier.take(looked)

    assert (looked.left[Left.ANSWERED], looked.chosen, taken.n) == (5, {}, 0)
    assert (earlier.lines(), earlier.stage.partition()) == before


def test_a_sample_that_somebody_changes_meanwhile_lets_nothing_of_the_batch_stand(
    earlier: Earlier,
) -> None:
    earlier.write(*(earlier.line(n) for n in range(5)))
    stage, looked = earlier.stage, earlier.look()

    def changing(*_: object) -> None:
        with stage.ledger.write() as connection:
            connection.exec_driver_sql("UPDATE sample SET prompt_sha256 = 'x' WHERE key = 'row4'")

    earlier.progress = changing  # told after the lines were read, before they are settled
    with pytest.raises(ConflictError, match="1 of 5 samples are not as they were read"):
        earlier.take(looked)

    assert stage.lines() == []  # the file is cut back
    assert recount(stage.ledger, stage.partition_id) == []
    assert stage.partition().counts.pending == N


def test_whole_lines_behind_the_committed_offset_are_adopted_by_recovery(
    earlier: Earlier,
) -> None:
    earlier.write(*(earlier.line(n) for n in range(5)))
    earlier.take()
    stage = earlier.stage
    tokens = stage.partition().tokens
    with stage.ledger.write() as connection:  # as if it had died before the ledger was told
        connection.exec_driver_sql(
            "UPDATE sample SET state = 'pending', shard_id = NULL, line_offset = NULL,"
            " line_bytes = NULL, output_tokens = 0, flags = NULL WHERE shard_id IS NOT NULL"
        )
        connection.exec_driver_sql("UPDATE shard SET committed_bytes = 0, inode = 0")
        connection.exec_driver_sql(
            "UPDATE partition SET n_pending = 12, n_ok = 0, kept_tokens = 0, received_tokens = 0"
        )
        connection.exec_driver_sql("DELETE FROM measure")

    assert check_files(stage.ledger, stage.partition(), frozenset({GEN_ID}), lambda _: None)

    assert len(earlier.lines()) == 5
    assert stage.partition().tokens == tokens
    assert measures.adopted_tokens(stage.ledger, stage.partition_id) == tokens.kept
    assert earlier.look().left[Left.ANSWERED] == 5


def test_a_half_written_answer_gives_way_and_counts_as_wasted(earlier: Earlier) -> None:
    stage = earlier.stage
    worker_id = stage.register()
    hand = Hand(stage.ledger, stage.partition_id, worker_id)
    claim = hand.one()
    hand.put_back(claim, unsaved=[1, 2, 3])
    workers.bury(stage.ledger, worker_id, "left", stage.clock.now())
    earlier.write(earlier.line(0))
    assert stage.partition().tokens.held == 3

    earlier.take()

    tokens, n = stage.partition().tokens, len(earlier.ids(0))
    assert (tokens.received, tokens.kept, tokens.wasted, tokens.held) == (n + 3, n, 3, 0)
    assert recount(stage.ledger, stage.partition_id) == []


def test_adopted_answers_are_measured_and_told_apart_from_what_came(earlier: Earlier) -> None:
    earlier.write(*(earlier.line(n) for n in range(3)))
    earlier.take()
    stage, lengths = earlier.stage, [len(earlier.ids(n)) for n in range(3)]

    found = measures.spreads(stage.ledger, stage.partition_id)

    assert (found[Measure.OUTPUT].n, found[Measure.LATENCY].n) == (3, 0)
    assert measures.adopted_tokens(stage.ledger, stage.partition_id) == sum(lengths)


def test_a_partition_at_work_is_refused_by_name(earlier: Earlier) -> None:
    earlier.write(earlier.line(0))
    earlier.stage.register()
    with pytest.raises(ConflictError, match="a worker is at work on p"):
        earlier.take()
    assert earlier.stage.partition().counts.pending == N


def test_by_index_and_by_the_digest_of_a_prompt(earlier: Earlier) -> None:
    digest = earlier.stage.rows()["row2"]["prompt_sha256"]
    earlier.write(
        earlier.line(1, id=None, idx=1),
        earlier.line(2, id=None, idx="2", prompt_sha256=digest),
        earlier.line(3, id=None, idx=3, prompt_sha256=digest),
        earlier.line(4, id=None, idx=99),
        earlier.line(5, id=None, idx=10**15),
    )
    looked = earlier.look(Fields(by_index=True))

    assert sorted(looked.chosen.values()) == [1, 2]
    assert (looked.left[Left.OTHER_PROMPT], looked.left[Left.UNKNOWN]) == (1, 2)
    assert looked.n_uncompared == 1


def test_of_a_doubled_id_the_prompt_decides(earlier: Earlier) -> None:
    with earlier.stage.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE sample SET key = 'row0' WHERE key = 'row1'")
        connection.exec_driver_sql("UPDATE sample SET prompt_sha256 = 'b' WHERE id = 2")
    earlier.write(earlier.line(0), earlier.line(0, prompt_sha256="b"))

    looked = earlier.look()

    assert looked.left == {Left.AMBIGUOUS: 1}
    assert list(looked.chosen.values()) == [2]


def test_texts_get_their_ids_from_the_server_and_are_never_continued(earlier: Earlier) -> None:
    words = {0: "so it ends", 1: "one two three"}
    earlier.write(
        *(
            earlier.line(n, output_ids=None, response=words[n], finish_reason="length")
            for n in words
        )
    )

    async def encoded(texts: Sequence[str]) -> list[list[int]]:
        async with ServerClient(earlier.simulator.url) as client:
            asked = [{"prompt": each, "add_special_tokens": False} for each in texts]
            return [await client.tokenize(each) for each in asked]

    earlier.encoded = encoded  # type: ignore[method-assign,assignment]  # the server's, this once

    looked = earlier.look()
    earlier.take(looked)

    assert looked.n_texts == 2
    assert "WARNING: 2 answers only as text" in "\n".join(told_look(looked))
    lines = earlier.lines()
    assert [lines[f"row{n}"]["flags"] for n in words] == [["adopted", "adopted_text"]] * 2
    assert [lines[f"row{n}"]["text"] for n in words] == list(words.values())
    assert all(lines[f"row{n}"]["output_ids"] for n in words)
    stage = earlier.stage
    wanted = Longer(partition="p", max_new_tokens=2 * LIMIT)
    said = extend(stage.ledger, earlier.run, wanted, who="me", now=stage.clock.now()).sentence
    assert "2 answers stay: 2 made under other settings" in said


def test_truncated_answers_go_on_like_our_own(earlier: Earlier) -> None:
    earlier.write(earlier.line(0, output_ids=[7] * 3 + list(range(LIMIT - 3)), finish_reason=None))
    earlier.take()
    stage = earlier.stage
    assert stage.partition().counts.truncated == 1
    wanted = Longer(partition="p", max_new_tokens=2 * LIMIT)
    said = extend(stage.ledger, earlier.run, wanted, who="me", now=stage.clock.now()).sentence
    assert "1 truncated -> 1 pending again" in said


def test_sealed_each_stands_once_in_input_order(earlier: Earlier) -> None:
    earlier.write(*(earlier.line(n) for n in reversed(range(N))))
    earlier.take()
    stage = earlier.stage
    sealing.seal(stage.ledger, stage.partition(), stage.output, stage.clock.now(), lambda _: None)

    names = [path.name for path in (stage.output / "p").glob("*.jsonl")]
    assert "responses.jsonl" in names
    assert not [name for name in names if name.startswith("responses-")]
    assert [line["index"] for line in books.lines(stage.output / "p")] == list(range(N))
    stage.assert_consistent()


def test_what_was_sealed_is_sealed_again_with_what_came_to_it(earlier: Earlier) -> None:
    stage = earlier.stage
    earlier.write(*(earlier.line(n) for n in (4, 9)))
    earlier.take()
    sealing.seal(stage.ledger, stage.partition(), stage.output, stage.clock.now(), lambda _: None)
    assert stage.partition().sealed_at is not None

    earlier.write(*(earlier.line(n) for n in (9, 7)))
    earlier.take()

    assert stage.partition().sealed_at is None
    assert len(earlier.lines()) == 3
    sealing.seal(stage.ledger, stage.partition(), stage.output, stage.clock.now(), lambda _: None)
    assert [line["index"] for line in books.lines(stage.output / "p")] == [4, 7, 9]
    stage.assert_consistent()


def test_a_file_that_changes_between_look_and_taking_is_told(earlier: Earlier) -> None:
    earlier.write(earlier.line(0), earlier.line(1))
    looked = earlier.look()
    earlier.write(earlier.line(0))
    with pytest.raises(ConflictError, match="1 answer of it were not found again"):
        earlier.take(looked)
    assert list(earlier.lines()) == ["row0"]


def test_a_later_turn_is_never_taken_over(earlier: Earlier) -> None:
    with earlier.stage.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE sample SET turn = 2 WHERE position = 1")
    earlier.write(earlier.line(0), earlier.line(1), earlier.line(2))

    taken = _in_thread(earlier)

    assert taken == 2
    assert sorted(earlier.lines()) == ["row0", "row2"]
