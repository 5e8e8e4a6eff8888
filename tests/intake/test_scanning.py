"""The scan: what becomes of a prompt file's bytes, row by row (inp-01 to inp-13)."""

import base64

import orjson
import pytest

from app.core.states import SampleState
from app.errors import InputError
from app.ledger import intake_rows, runs
from app.ledger.activity import latest
from app.ledger.counters import recount
from tests.files.test_inp_cases import MULTI
from tests.intake.desk import Desk, user


def told(desk: Desk) -> str:
    """Return the load report as the activity list keeps it."""
    run_id = desk.partition("p").run_id
    entries = latest(desk.ledger, run_id)
    return "\n".join(one.detail for one in entries if one.event == "prompts read")


async def test_inp_03_blank_lines_are_no_records_and_an_empty_partition_is_done(
    desk: Desk,
) -> None:
    desk.copy("p", "crlf_blank.jsonl")
    desk.copy("nothing", "empty.jsonl")

    await desk.submit()

    assert desk.partition("p").counts.total == 3
    nothing = desk.partition("nothing")
    assert (nothing.counts.total, nothing.intake, nothing.is_over) == (0, "tokenized", True)


async def test_inp_04_broken_json_in_the_middle(desk: Desk) -> None:
    desk.copy("p", "broken_middle.jsonl")

    await desk.submit()

    partition = desk.partition()
    assert (partition.counts.pending, partition.counts.rejected) == (3, 2)
    assert recount(desk.ledger, partition.id) == []
    assert "5 records, 2 rejected" in told(desk)
    assert "line 2: broken JSON" in told(desk)
    assert "line 4: a list, not an object" in told(desk)
    lines = (desk.output / "p" / "rejected.jsonl").read_bytes().splitlines()
    assert [orjson.loads(line)["line"] for line in lines] == [2, 4]
    assert orjson.loads(lines[1])["reason"] == "a list, not an object"


async def test_inp_05_half_of_a_surrogate_pair_is_rejected(desk: Desk) -> None:
    desk.copy("p", "surrogate.jsonl")

    await desk.submit()

    rows = desk.by_key()
    assert {key: row["state"] for key, row in rows.items()} == {
        "pair": "pending",
        "plain": "pending",
        "lone": "rejected",
    }
    assert (desk.output / "p" / "rejected.jsonl").read_text(encoding="utf-8")


async def test_inp_06_the_same_id_twice_is_two_samples_and_is_listed(desk: Desk) -> None:
    desk.copy("p", "dup_id.jsonl")

    await desk.submit()

    rows = desk.samples(desk.partition().id)
    assert [(row["key"], row["record_index"]) for row in rows] == [("x", 0), ("y", 1), ("x", 2)]
    assert 'id "x" at lines 1 and 3' in told(desk)


async def test_inp_06_strict_mode_refuses_with_line_numbers_and_leaves_no_run(
    desk: Desk,
) -> None:
    desk.copy("p", "dup_id.jsonl")
    desk.change(strict_ids=True)

    with pytest.raises(InputError, match='id "x" at lines 1 and 3'):
        await desk.submit()

    assert runs.list_runs(desk.ledger) == []
    with desk.ledger.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM sample").scalar() == 0


async def test_inp_08_only_text_is_a_prompt(desk: Desk) -> None:
    desk.copy("p", "content_kinds.jsonl")

    await desk.submit()

    states = {key: row["state"] for key, row in desk.by_key().items()}
    assert {key for key, state in states.items() if state == "pending"} == {"text", "parts"}
    assert {key for key, state in states.items() if state == "rejected"} == {
        *("null", "empty", "blank", "number", "image"),
    }


async def test_inp_11_all_members_of_a_gzip_are_scanned(desk: Desk) -> None:
    folder = desk.prompts / "p"
    folder.mkdir()
    (folder / "prompts.jsonl.gz").write_bytes(base64.b64decode(MULTI))

    await desk.submit()

    assert desk.partition().counts.pending == 4


async def test_inp_11_a_file_cut_short_after_the_check_leaves_no_run(desk: Desk) -> None:
    folder = desk.prompts / "p"
    folder.mkdir()
    path = folder / "prompts.jsonl.gz"
    path.write_bytes(base64.b64decode(MULTI))
    report = await desk.check()
    path.write_bytes(base64.b64decode(MULTI)[:-12])

    with pytest.raises(InputError, match=r"prompts\.jsonl\.gz is damaged or cut short"):
        await desk.submit_checked(report)

    assert runs.list_runs(desk.ledger) == []


async def test_replicas_have_positions_of_their_own_and_rejected_records_have_one_row(
    desk: Desk,
) -> None:
    desk.write("p", [user("a", "x"), user("b", ""), user("c", "z")])
    desk.change(samples_per_prompt=3)

    await desk.submit()

    rows = desk.samples(desk.partition().id)
    assert [(row["position"], row["key"], row["replica"]) for row in rows] == [
        (0, "a", 0), (1, "a", 1), (2, "a", 2), (3, "b", 0), (6, "c", 0), (7, "c", 1), (8, "c", 2),
    ]  # fmt: skip
    assert desk.partition().counts.rejected == 1


async def test_a_records_own_sampling_is_kept_and_unknown_parameters_reject_it(
    desk: Desk,
) -> None:
    own = {"temperature": 0.1, "max_new_tokens": 9}
    desk.write(
        "p",
        [
            user("own", "x", sampling_params=own),
            user("odd", "y", sampling_params={"temprature": 1}),
            user("unsent", "y", sampling_params={"structural_tag": "x"}),
        ],
    )

    await desk.submit()

    rows = desk.by_key()
    assert orjson.loads(rows["own"]["sampling_json"]) == {"temperature": 0.1}
    assert rows["own"]["max_new_tokens"] == 9
    assert rows["odd"]["state"] == rows["unsent"]["state"] == SampleState.REJECTED
    assert "temprature" in rows["odd"]["reason"]
    assert "structural_tag" in rows["unsent"]["reason"]


async def test_a_scan_that_died_begins_again_from_nothing(desk: Desk) -> None:
    desk.write("p", [user(f"a{n}", "x") for n in range(20)])
    await desk.submit()
    partition = desk.partition()
    before = [row["key"] for row in desk.samples(partition.id)]
    with desk.ledger.write() as connection:  # as a death between two batches leaves it
        connection.exec_driver_sql("UPDATE partition SET intake = 'scanning', n_pending = 7")
        connection.exec_driver_sql("DELETE FROM sample WHERE position >= 7")

    await desk.submit()

    assert [row["key"] for row in desk.samples(partition.id)] == before
    assert desk.partition().intake == "scanned"
    assert recount(desk.ledger, partition.id) == []


async def test_a_partition_that_was_scanned_is_never_emptied(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    await desk.submit()

    await desk.submit()

    assert len(desk.samples(desk.partition().id)) == 1
    assert intake_rows.untokenized(desk.ledger, desk.partition().id, -1, 9)[0].record_index == 0
