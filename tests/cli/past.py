"""A run of hand-made rows to look back on: its pause, its end, and what came after the end."""

from datetime import datetime, timedelta

import orjson

from app.controls import pause, resume
from app.core.conditions import ConditionKind
from app.core.types import PartitionId
from app.ledger.activity import Deed, add
from app.ledger.orders import Order, finish_run, reopen_run
from app.ledger.snapshots import Snapshot, record
from tests.api.home import Home

EVERY_S = 10
WHOLE_S = 2_000


class Course:
    """A run of 2,000 active seconds with a pause of 600 s after half of it, 1,000 tokens in all."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.begin = home.run.created_at
        self.half = self.begin + timedelta(seconds=WHOLE_S / 2)
        self.end = self.begin + timedelta(seconds=WHOLE_S + 600)

    def at(self, active_s: float) -> datetime:
        pause_s = 600 if active_s > WHOLE_S / 2 else 0
        return self.begin + timedelta(seconds=active_s + pause_s)

    def write(
        self, *, factor: float = 1.25, until_s: int = WHOLE_S, with_both: bool = False
    ) -> None:
        """Write rows up to a moment; `with_both`: the second partition's have estimates too."""
        home = self.home
        pause(home.ledger, home.run, (), who="operator", now=self.half)
        until = self.half + timedelta(seconds=600)
        resume(home.ledger, home.run, (), who="operator", now=until)
        kind = str(ConditionKind.STALLED)
        partition_id = home.partition("B2_code").id
        for detail, seconds in (("64 requests hang", 300), ("over after 2 min", 420)):
            deed = Deed(
                who="system", event=kind, detail=detail, run_id=home.run_id,
                partition_id=partition_id,
            )  # fmt: skip
            add(home.ledger, deed, self.at(seconds))
        ids = [home.partition(name).id for name in home.names]
        rows = [
            self._row(second, ids, factor, with_both=with_both)
            for second in range(0, until_s + 1, EVERY_S)
        ]
        broken = Snapshot(run_id=home.run_id, at_ms=rows[3].at_ms + 1, figures_json="{}")
        record(home.ledger, [*rows, broken])

    def _row(
        self, second: int, ids: list[PartitionId], factor: float, *, with_both: bool
    ) -> Snapshot:
        truth = WHOLE_S - second
        left = [round(truth * factor * ratio) for ratio in (0.7, 1.0, 1.3)]
        value = {
            "session": 1,
            "tokens": {"received": second // 2},
            "best": 0.75,
            "left_s": left if second >= 100 else None,
            "partitions": {
                str(ids[0]): [second // 4, 1, 8, 0.25, left],
                # else its row is of an earlier version, without estimates
                str(ids[1]): [second // 4, 1, 8, 0.25, left] if with_both else [second // 4],
            },
        }
        return Snapshot(
            run_id=self.home.run_id,
            at_ms=int(self.at(second).timestamp() * 1000),
            figures_json=orjson.dumps(value).decode(),
        )

    def finish(self) -> None:
        home = self.home
        for name in home.names:
            home.keep(name, 10, tokens=50)
        home.leave()
        with home.ledger.write() as connection:
            connection.exec_driver_sql(
                "UPDATE partition SET sealed_at_ms = ?", (int(self.end.timestamp() * 1000),)
            )
        assert finish_run(home.ledger, Order(run_id=home.run_id, who="system", now=self.end))


def reopen(course: Course, *, after_s: float = 50) -> datetime:
    """Give B2_code one more sample to answer, so that the finished run goes on."""
    at = course.end + timedelta(seconds=after_s)
    with course.home.ledger.write() as connection:
        connection.exec_driver_sql(
            "UPDATE partition SET sealed_at_ms = NULL, n_pending = 1, n_ok = n_ok - 1"
            " WHERE name = 'B2_code'"
        )
    assert reopen_run(course.home.ledger, Order(run_id=course.home.run_id, who="ops", now=at))
    return at


def finish_again(course: Course, at: datetime) -> None:
    """Let B2_code's one sample end, with 500 tokens."""
    with course.home.ledger.write() as connection:
        connection.exec_driver_sql(
            "UPDATE partition SET sealed_at_ms = ?, n_pending = 0, n_ok = n_ok + 1,"
            " received_tokens = received_tokens + 500, kept_tokens = kept_tokens + 500"
            " WHERE name = 'B2_code'",
            (int(at.timestamp() * 1000),),
        )
    order = Order(run_id=course.home.run_id, who="system", now=at)
    assert finish_run(course.home.ledger, order)


def row(course: Course, at: datetime, received: int, *, left: int, session: int = 1) -> Snapshot:
    """Return a row of B1_chat over and B2_code at work."""
    chat, code = (str(course.home.partition(name).id) for name in course.home.names)
    value = {
        "session": session,
        "tokens": {"received": received},
        "left_s": [left] * 3,
        "partitions": {
            chat: [500, 0, 8, 0, [0, 0, 0]],
            code: [received - 500, 1, 8, 0.25, [left] * 3],
        },
    }
    return Snapshot(
        run_id=course.home.run_id,
        at_ms=int(at.timestamp() * 1000),
        figures_json=orjson.dumps(value).decode(),
    )
