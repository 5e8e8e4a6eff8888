"""Where going on only makes waste the partition is paused, once, and a person is not overruled."""

from app.auto_pause import AutoPause
from app.controls import resume
from app.core.conditions import Condition, ConditionKind
from app.core.states import PartitionState, SampleState
from app.figures import PartitionFigures, concerns
from app.recorder import Recorder
from tests.recorder.conftest import Desk, desk

__all__ = ["desk"]
NAME = "B1_chat"
MISMATCH = "given up after 3 attempts: the server was prompted with 3 tokens, 4 were sent"


class Watched:
    """A recorder with its auto-pause, and what a person sees of one partition."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.n_acted = 0
        self.recorder: Recorder = desk.recorder()
        desk.stack.callback(self.recorder.close)
        self.pausing = AutoPause(desk.home.ledger, desk.hands, self.recorder.live, self._acted)
        self.tick()

    def _acted(self) -> None:
        self.n_acted += 1

    def tick(self) -> None:
        """Look, act, and look again if that has changed something."""
        n_before = self.n_acted
        self.desk.run(self.recorder, 1)
        self.pausing.step()
        if self.n_acted > n_before:
            self.desk.run(self.recorder, 1)

    def empty(self, n: int) -> None:
        self.desk.home.keep(NAME, n, tokens=1, state=SampleState.EMPTY)
        self.tick()

    @property
    def state(self) -> str:
        return str(self.partition.state)

    @property
    def partition(self) -> PartitionFigures:
        figures = self.recorder.figures(self.desk.home.run_id)
        return next(each for each in figures.partitions if each.name == NAME)

    def conditions(self) -> list[Condition]:
        return list(self.recorder.figures(self.desk.home.run_id).conditions)

    def resume(self) -> None:
        home = self.desk.home
        resume(home.ledger, home.run, [NAME], who="operator", now=self.desk.hands.now())
        self.tick()


def test_srv_11_empty_answers_pause_the_partition_after_a_window(desk: Desk) -> None:
    watched = Watched(desk)

    watched.empty(19)
    assert watched.state == PartitionState.ACTIVE
    watched.empty(1)

    partition = watched.partition
    assert partition.state is PartitionState.PAUSED
    assert partition.reason.startswith("many empty: 20 of the last 20 answers of B1_chat are empty")
    (empty,) = watched.conditions()
    assert (empty.kind, empty.partition) == (ConditionKind.MANY_EMPTY, NAME)
    told = [one for one in desk.told() if one[0] in ("state", "many empty")]
    assert [event for event, _ in told] == ["many empty", "state"]
    assert told[1][1].startswith("B1_chat: active -> paused (many empty: ")
    assert watched.n_acted == 1
    said = [one for one in concerns(watched.recorder.figures(desk.home.run_id)) if "empty" in one]
    assert len(said) == 1
    assert said[0].startswith("B1_chat is paused: many empty: ")


def test_who_resumes_it_is_overruled_only_after_a_whole_further_window(desk: Desk) -> None:
    watched = Watched(desk)
    watched.empty(20)
    watched.resume()
    assert watched.state == PartitionState.ACTIVE

    watched.empty(19)
    assert watched.state == PartitionState.ACTIVE
    watched.empty(1)

    assert watched.state == PartitionState.PAUSED
    assert watched.n_acted == 2


def test_a_new_service_overrules_nobody_either(desk: Desk) -> None:
    first = Watched(desk)
    first.empty(20)
    first.resume()
    first.recorder.close()

    second = Watched(desk)
    second.tick()

    assert second.state == PartitionState.ACTIVE
    assert [one.kind for one in second.conditions()] == [ConditionKind.MANY_EMPTY]
    assert [event for event, _ in desk.told()].count("many empty") == 1
    second.empty(20)
    assert second.state == PartitionState.PAUSED


def test_good_answers_end_it(desk: Desk) -> None:
    watched = Watched(desk)
    watched.empty(20)
    watched.resume()

    desk.home.keep(NAME, 20)
    watched.tick()

    assert watched.conditions() == []
    told = [detail for event, detail in desk.told() if event == "many empty"]
    assert len(told) == 2
    assert told[1].startswith("over after ")


def test_one_look_is_acted_on_once(desk: Desk) -> None:
    """The ledger may not be read for a while: a person who resumes meanwhile is not overruled."""
    watched = Watched(desk)
    watched.empty(19)
    desk.home.keep(NAME, 1, tokens=1, state=SampleState.EMPTY)
    desk.run(watched.recorder, 1)
    watched.pausing.step()
    home = desk.home
    resume(home.ledger, home.run, [NAME], who="operator", now=desk.hands.now())

    watched.pausing.step()

    assert home.partition(NAME).state is PartitionState.ACTIVE


def test_srv_14_answers_to_another_prompt_pause_it_too(desk: Desk) -> None:
    watched = Watched(desk)

    desk.home.fail(NAME, 19, reason=MISMATCH)
    watched.tick()
    assert watched.state == PartitionState.ACTIVE
    desk.home.fail(NAME, 1, reason=MISMATCH)
    watched.tick()

    assert watched.state == PartitionState.PAUSED
    assert watched.partition.reason.startswith("many mismatched: 20 of the last 20 answers")


def test_failures_of_another_kind_pause_nothing(desk: Desk) -> None:
    watched = Watched(desk)

    desk.home.fail(NAME, 40)
    watched.tick()

    assert watched.state == PartitionState.ACTIVE
    assert [one.kind for one in watched.conditions()] == [ConditionKind.FAILING]
