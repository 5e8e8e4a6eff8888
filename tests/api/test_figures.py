"""The figures of a run: speeds, estimates and conditions (cases prg-01 to prg-05)."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.controls import pause, resume
from app.core.conditions import ConditionKind
from app.core.estimate import Estimate, Unknown
from app.core.landing import EndsBy
from app.core.loads import ServerLoad
from app.core.spec import to_json
from app.core.states import RunState
from app.core.types import PartitionId, RunId
from app.figures import RunFigures, Speedometer, collect, concerns
from app.figures.looking import Beside
from app.ledger import runs, servers, workers
from app.ledger.progress import Pulse
from app.limiting import set_budget, set_concurrency, set_goal
from app.settings import Settings
from tests.api.home import Home

ONE = PartitionId(1)
RUN = RunId(1)


@dataclass
class Hands:
    """A clock that is set by hand, so that no test waits for a minute."""

    at_s: float = 1_000.0

    def now(self) -> datetime:
        return datetime(2024, 5, 1, tzinfo=UTC) + timedelta(seconds=self.at_s)

    def monotonic(self) -> float:
        return self.at_s

    async def sleep(self, delay_s: float) -> None:
        self.at_s += delay_s


def pulse(received: int, **changes: object) -> Pulse:
    beat = Pulse(
        run_id=RunId(1),
        partition_id=ONE,
        is_working=True,
        own_concurrency=None,
        received_tokens=received,
        n_in_flight=1,
    )
    return replace(beat, **changes)  # type: ignore[arg-type]  # named by the tests


def fed(rates: list[int], *, begin: int = 0, meter: Speedometer | None = None) -> Speedometer:
    """Feed one second after the other, so many tokens in each."""
    meter = meter or Speedometer()
    received = begin
    meter.feed([pulse(received)], 0.0)
    for second, rate in enumerate(rates, 1):
        received += rate
        meter.feed([pulse(received)], float(second))
    return meter


def test_prg_01_tokens_of_an_earlier_session_are_no_speed() -> None:
    meter = fed([100] * 20, begin=90_000_000)
    assert meter.shown(ONE) == 100.0
    assert meter.seen(RUN, 20.0).went[ONE].tokens_per_slot_s == 100.0


def test_prg_01_one_look_is_no_speed() -> None:
    meter = Speedometer()
    meter.feed([pulse(5_000)], 1.0)
    assert meter.shown(ONE) is None
    assert meter.seen(RUN, 1.0).observed_s == 0.0


def test_the_wait_before_the_first_token_is_not_counted() -> None:
    meter = fed([0] * 300 + [100] * 20)
    assert meter.seen(RUN, 320.0).went[ONE].tokens_per_slot_s == 100.0


def test_prg_03_the_shown_speed_is_of_the_last_minute() -> None:
    meter = fed([1_000] * 300 + [10] * 61)
    assert meter.shown(ONE) == 10.0


def test_prg_05_a_pause_is_forgotten() -> None:
    meter = fed([100] * 30)
    meter.feed([pulse(3_000, is_working=False)], 31.0)
    assert meter.shown(ONE) is None
    meter.feed([pulse(3_000)], 5_000.0)
    for second in range(1, 6):
        meter.feed([pulse(3_000 + 50 * second)], 5_000.0 + second)
    assert meter.shown(ONE) == 50.0
    assert meter.seen(RUN, 5_005.0).observed_s == 4.0


def test_a_control_change_begins_the_estimate_anew() -> None:
    meter = fed([100] * 60)
    meter.feed([pulse(6_000, own_concurrency=9)], 61.0)
    assert meter.seen(RUN, 61.0).observed_s == 0.0
    assert meter.seen(RUN, 61.0).n_changes == 1
    assert meter.shown(ONE) is not None


def test_a_control_change_of_another_partition_begins_the_estimate_anew() -> None:
    meter = Speedometer()
    other = PartitionId(2)
    for second in range(60):
        both = [pulse(100 * second), pulse(100 * second, partition_id=other)]
        meter.feed(both, float(second))
    assert meter.seen(RUN, 59.0).observed_s > 50
    meter.feed([pulse(6_000), pulse(6_000, partition_id=other, is_working=False)], 60.0)
    assert meter.seen(RUN, 60.0).observed_s == 0.0


def test_a_restart_of_the_server_begins_the_estimate_anew() -> None:
    meter = Speedometer()
    meter.see_servers(RUN, None, 0)
    fed([100] * 60, meter=meter)
    meter.see_servers(RUN, None, 1)
    meter.feed([pulse(6_000)], 61.0)
    assert meter.seen(RUN, 61.0).observed_s == 0.0
    assert meter.seen(RUN, 61.0).curve is None


def test_in_flight_is_remembered_without_gaps() -> None:
    meter = Speedometer()
    meter.feed([pulse(0)], 1.0)
    meter.feed([pulse(0)], 2.0)
    assert meter.in_flight_since_s(RunId(1)) == 1.0
    meter.feed([pulse(0, n_in_flight=0)], 3.0)
    assert meter.in_flight_since_s(RunId(1)) is None


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=900))
def test_a_speed_lies_between_the_slowest_and_the_fastest_second(rates: list[int]) -> None:
    meter = fed(rates)
    went = meter.seen(RUN, float(len(rates))).went
    for speed in (meter.shown(ONE), went[ONE].tokens_per_slot_s if went else None):
        assert speed is None or 0 <= speed <= max(rates) + 1e-6


def look(home: Home, meter: Speedometer | None, hands: Hands) -> RunFigures:
    return collect(home.ledger, home.run, meter, Settings(home=home.folder), hands)


def working(home: Home, hands: Hands, *, seconds: int, tokens: int) -> Speedometer:
    """Answer one sample of B1 and of B2 each second, with so many tokens."""
    meter = Speedometer()
    meter.look(home.ledger, hands.at_s)
    for _ in range(seconds):
        hands.at_s += 1.0
        home.keep("B1_chat", 1, tokens=tokens)
        home.keep("B2_code", 1, tokens=tokens)
        meter.look(home.ledger, hands.at_s)
    return meter


def test_the_estimate_is_what_is_left_over_the_speed(home: Home) -> None:
    big = Home(home.folder.parent / "big", n_samples=60)
    hands = Hands()
    meter = working(big, hands, seconds=20, tokens=50)
    figures = look(big, meter, hands)
    assert isinstance(figures.time_left, Estimate)
    assert 30 < figures.time_left.mid_s < 50
    assert figures.speed_tokens_per_s is not None
    assert 90 < figures.speed_tokens_per_s < 106
    assert isinstance(figures.partitions[0].time_left, Estimate)
    big.ledger.close()


def test_a_deadline_that_comes_first_is_the_end_and_where_it_ends_is_said(home: Home) -> None:
    big = Home(home.folder.parent / "big", n_samples=60)
    hands = Hands()
    meter = working(big, hands, seconds=20, tokens=50)
    run = replace(big.run, deadline_at=hands.now() + timedelta(seconds=10))
    figures = collect(big.ledger, run, meter, Settings(home=big.folder), hands)
    ten = Estimate(low_s=10.0, mid_s=10.0, high_s=10.0)
    assert [figures.time_left, *(each.time_left for each in figures.partitions)] == [ten] * 3
    assert figures.decided_by is None
    assert figures.ends is not None
    assert figures.ends.by is EndsBy.DEADLINE
    big.ledger.close()


def test_a_paused_partition_is_no_part_of_the_end(home: Home) -> None:
    big = Home(home.folder.parent / "big", n_samples=60)
    hands = Hands()
    meter = working(big, hands, seconds=20, tokens=50)
    pause(big.ledger, big.run, ["B2_code"], who="operator", now=hands.now())
    meter.look(big.ledger, hands.at_s)
    figures = look(big, meter, hands)
    paused = figures.partitions[1].time_left
    assert isinstance(paused, Unknown)
    assert paused.why == "paused"
    assert paused.work_s is not None
    assert paused.work_s > 5
    pause(big.ledger, big.run, (), who="operator", now=hands.now())
    assert look(big, meter, hands).time_left == Unknown(why="paused")
    resume(big.ledger, big.run, (), who="operator", now=hands.now())
    big.ledger.close()


def test_without_a_service_the_speed_is_not_known(home: Home) -> None:
    figures = look(home, None, Hands())
    assert figures.speed_tokens_per_s is None
    assert isinstance(figures.time_left, Unknown)
    assert "no service" in figures.time_left.why


def test_prg_03_a_stalled_run_has_no_speed_and_no_end(home: Home) -> None:
    big = Home(home.folder.parent / "big", n_samples=60)
    spec = replace(big.spec("night"), stall_after_s=20.0)
    runs.set_identity(
        big.ledger, big.run_id, fingerprint_json="{}", gen_id="gen-one", spec_json=to_json(spec)
    )
    hands = Hands()
    meter = working(big, hands, seconds=15, tokens=50)
    big.beat("B1_chat", in_flight=4, last_token_at=hands.now())
    meter.look(big.ledger, hands.at_s)
    hands.at_s += 25.0
    meter.look(big.ledger, hands.at_s)
    figures = look(big, meter, hands)
    assert [one.kind for one in figures.conditions][:1] == [ConditionKind.STALLED]
    assert figures.partitions[0].speed_tokens_per_s == 0.0
    assert figures.time_left == Unknown(why="stalled")
    assert figures.last_token_at == hands.now() - timedelta(seconds=25)
    big.ledger.close()


def test_a_server_that_all_workers_wait_for_is_said(home: Home) -> None:
    hands = Hands()
    home.beat("B1_chat", waiting_since=hands.now())
    home.beat("B2_code")
    assert look(home, Speedometer(), hands).conditions == ()
    home.beat("B2_code", waiting_since=hands.now())
    assert look(home, Speedometer(), hands).conditions == ()
    hands.at_s += 5.0
    figures = look(home, Speedometer(), hands)
    assert figures.conditions[0].kind is ConditionKind.WAITING_FOR_SERVER
    assert figures.time_left == Unknown(why="waiting for server")


def test_prg_02_percent_is_100_only_when_nothing_is_left(home: Home) -> None:
    seen = []
    for name in home.names:
        for _ in range(home.n_samples):
            home.keep(name, 1)
            figures = look(home, None, Hands())
            assert figures.counts.total == 20
            seen.append(figures.percent)
    assert seen == sorted(seen)
    assert seen[-1] == 100
    assert max(seen[:-1]) <= 99


def test_progress_counts_towards_whichever_end_is_nearer(home: Home) -> None:
    now = Hands().now()
    home.keep("B1_chat", 4, tokens=50)
    assert look(home, None, Hands()).partitions[0].percent == 40
    set_goal(home.ledger, home.run, "B1_chat", 5, who="operator", now=now)
    assert look(home, None, Hands()).partitions[0].percent == 80
    set_budget(home.ledger, home.run, "B1_chat", 220, who="operator", now=now)
    assert look(home, None, Hands()).partitions[0].percent == 90


def test_a_finished_run_has_nothing_left(home: Home) -> None:
    for name in home.names:
        home.keep(name, home.n_samples)
    figures = look(home, Speedometer(), Hands())
    assert figures.time_left == Estimate(low_s=0.0, mid_s=0.0, high_s=0.0)
    assert home.run.state is RunState.RUNNING


def test_a_server_that_hangs_is_said_though_no_connection_broke(home: Home) -> None:
    hands = Hands()
    home.beat("B1_chat", in_flight=4, last_token_at=hands.now())
    away = ServerLoad(url=home.server_url, away_since=hands.now())
    beside = Beside(loads={home.server_url: away})

    def seen() -> RunFigures:
        settings = Settings(home=home.folder)
        return collect(home.ledger, home.run, Speedometer(), settings, hands, beside)

    hands.at_s += 9.0
    assert seen().conditions == ()
    hands.at_s += 2.0
    assert seen().conditions[0].kind is ConditionKind.WAITING_FOR_SERVER
    assert seen().time_left == Unknown(why="waiting for server")
    home.beat("B1_chat", in_flight=4, last_token_at=hands.now())
    assert seen().conditions == ()


def test_no_end_is_shown_while_no_token_comes(home: Home) -> None:
    big = Home(home.folder.parent / "big", n_samples=60)
    hands = Hands()
    meter = working(big, hands, seconds=20, tokens=50)
    for _ in range(70):
        hands.at_s += 1.0
        meter.look(big.ledger, hands.at_s)
    figures = look(big, meter, hands)
    assert figures.speed_tokens_per_s == 0.0
    assert figures.time_left == Unknown(why="no tokens are coming")
    big.ledger.close()


def test_a_partition_whose_class_has_nothing_left_for_it_has_no_end_and_is_said(
    home: Home,
) -> None:
    hands = Hands()
    meter = working(home, hands, seconds=6, tokens=50)
    now = hands.now()
    set_concurrency(home.ledger, home.run, "B2_code", 4, who="operator", now=now)
    worker = next(each.id for each in workers.living(home.ledger, home.run_id))
    server = servers.remember_server(home.ledger, home.server_url, "{}", now)
    workers.set_shares(home.ledger, {worker: {server: 0}})
    figures = look(home, meter, hands)
    starving = next(each for each in figures.partitions if each.concurrency_requests == 0)
    assert starving.time_left == Unknown(why="its class has no concurrency left for it")
    assert not [one for one in concerns(figures) if "must wait" in one]  # its turn will come
    together = tuple(replace(each, class_name="short") for each in figures.partitions)
    said = concerns(replace(figures, partitions=together))
    assert [one for one in said if one.startswith(f"{starving.name} must wait")]
