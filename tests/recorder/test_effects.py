"""The effect of an order stands in the activity once, whoever records."""

import pytest

from app.ledger import activity
from app.limiting import set_concurrency
from app.recorder import Recorder
from tests.recorder.conftest import Desk


def effects(desk: Desk) -> list[str]:
    return [detail for event, detail in desk.told() if event == "effect"]


@pytest.mark.slow
def test_an_order_is_judged_once_also_by_the_next_service(desk: Desk) -> None:
    home = desk.home
    desk.settings = desk.settings.model_copy(update={"snapshot_s": 10.0})
    recorder = desk.recorder()
    step(desk, recorder, 20, tokens=10)
    set_concurrency(home.ledger, home.run, "B1_chat", 9, who="anna", now=desk.hands.now())
    step(desk, recorder, 17, tokens=20)
    assert effects(desk) == []
    step(desk, recorder, 3, tokens=20)
    assert effects(desk) == ["B1_chat: share of its class → 9: +100 % tok/s"]
    entry = activity.latest(home.ledger, home.run_id, 1)[0]
    assert entry.partition_id == home.partition("B1_chat").id
    recorder.close()

    second = desk.recorder()
    desk.stack.callback(second.close)
    step(desk, second, 3, tokens=20)
    assert len(effects(desk)) == 1
    deed = activity.Deed(
        who="system", event="effect", run_id=home.run_id, partition_id=entry.partition_id
    )
    assert not activity.add_once(home.ledger, deed, entry.id - 1, desk.hands.now())
    assert activity.add_once(home.ledger, deed, entry.id, desk.hands.now())


def step(desk: Desk, recorder: Recorder, n: int, *, tokens: int) -> None:
    """Look each ten seconds; in each B1 answers one sample."""
    for _ in range(n):
        desk.hands.at_s += 10.0
        desk.home.keep("B1_chat", 1, tokens=tokens)
        recorder.look()
        recorder.keep()
