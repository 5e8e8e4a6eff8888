"""Where a condition must be seen: API, `/metrics`, page and messages, looked at as a user does.

Owns the looking and what has been seen so far. Invariant: what the API says before and after a
look at `/metrics` and page alike is what these show too.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from app.core.conditions import ConditionKind
from app.core.format import one_line
from app.ledger.lock import living_service
from tests.notifying.receiver import Receiver
from tests.process.run_process import RunProcess, wait_for
from tests.process.serving import run_of
from tests.process.shown import Cells

Key = tuple[str, str]
OVER = "over after "
# what the pill of a row says, by the kind that a partition has and none that is graver
PILLS = {
    ConditionKind.PARTITION_STALLED: "Stalled",
    ConditionKind.MANY_MISMATCHED: "Mismatched",
    ConditionKind.MANY_EMPTY: "Empty",
    ConditionKind.FAILING: "Failing",
    ConditionKind.MANY_DEGENERATE: "Degenerate",
    ConditionKind.MANY_TRUNCATED: "Truncated",
    ConditionKind.SLOW: "Slow",
    ConditionKind.DRAINING: "Draining",
    ConditionKind.BUDGET_REACHED: "Budget used",
}
_FIGURES = re.compile(r"(\d[\d.,:]*( ?(s|m|min|h|d|B|[kMGT]B)\b)? ?)+")


def heard_by(receiver: Receiver) -> dict[str, str]:
    """Return the environment of a service that sends its messages there."""
    return {"LONGWATCH_NOTIFY_URL": receiver.url, "LONGWATCH_NOTIFY_ALLOW": "127.0.0.1"}


@dataclass
class Eyes:
    """One viewer of a run called "test", and whoever receives the service's messages."""

    client: httpx.Client
    receiver: Receiver
    pills: dict[str, set[str]] = field(default_factory=dict)
    seen: set[Key] = field(default_factory=set)
    on_page: set[Key] = field(default_factory=set)
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The address of the service."""
        return str(self.client.base_url).removesuffix("/api/v1/").removesuffix("/api/v1")

    def look(self) -> set[Key]:
        """Look at everything; return what holds."""
        before, said_before = self.from_api()
        metrics = self.client.get(f"{self.root}/metrics").text
        page = Cells(self.client.get(f"{self.root}/runs/1", headers={"accept": "text/html"}).text)
        after, said_after = self.from_api()
        shown = from_metrics(metrics)
        assert before & after <= shown <= before | after, (before, shown, after)
        for each in self.run["partitions"]:
            word = page.texts.get(f"p{each['id']}-s", "")
            self.pills.setdefault(each["name"], set()).add(word)
        self._look_for_sentences(page, said_before, said_after)
        self.seen |= after
        return after

    def from_api(self) -> tuple[set[Key], dict[Key, str]]:
        """Return what the API says that holds, and the sentences."""
        self.run = run_of(self.client)
        said = {(one["kind"], one["partition"] or ""): one for one in self.run["conditions"]}
        assert len(said) == len(self.run["conditions"])
        for one in self.run["conditions"]:
            assert one["sentence"].endswith(".") or one["kind"] == ConditionKind.ALL_PAUSED
        return set(said), {key: one["sentence"] for key, one in said.items()}

    def _look_for_sentences(
        self, page: Cells, before: dict[Key, str], after: dict[Key, str]
    ) -> None:
        """Find each condition of the whole run in the banner or in the list of needs."""
        lists = [text for name, text in page.texts.items() if name.startswith(("ban-", "need-"))]
        shown = [_without_figures(text) for text in lists]
        for key, sentence in before.items():
            words = _without_figures(sentence)
            if key[1] or words != _without_figures(after.get(key, "")):
                continue
            is_shown = any(_says(each, words) for each in shown)
            assert is_shown or "need-more" in page.texts, (key, sentence, lists)
            self.on_page |= {key} if is_shown else set()

    def wait(self, key: Key, *, gone: bool = False, within_s: float = 60.0) -> None:
        """Wait until it holds, one of the whole run on the page too, or does not any more."""

        def is_so() -> bool:
            holds = key in self.look()
            return not holds if gone else holds and (bool(key[1]) or key in self.on_page)

        wait_for(is_so, f"{key} to {'end' if gone else 'begin'}", within_s)

    def told(self) -> dict[Key, list[str]]:
        """Return the details of the system's entries by kind and partition, the oldest first."""
        entries = self.client.get("/runs/test/activity", params={"limit": 500}).json()["activity"]
        found: dict[Key, list[str]] = {}
        for one in reversed(entries):
            if one["who"] == "system" and one["event"] in set(ConditionKind):
                found.setdefault((one["event"], one["partition"] or ""), []).append(one["detail"])
        return found

    def assert_told(self, keys: Collection[Key], *, n_times: int = 1) -> None:
        """Each has begun and ended so often, in the activity and by a message for each."""
        wait_for(
            lambda: all(len(self.told().get(key, [])) >= 2 * n_times for key in keys),
            f"{keys} told",
            15,
        )
        told = self.told()
        for key in keys:
            assert [detail.startswith(OVER) for detail in told[key]] == [False, True] * n_times, key
        self.assert_messages(keys, n_times=n_times)
        for key in keys:
            heard = [str(one["sentence"]) for one in self._heard(key)]
            assert heard == [one_line(detail) for detail in told[key]]

    def assert_messages(self, keys: Collection[Key], *, n_times: int = 1) -> None:
        """Each has been told of outside so often: a begin, an end, in turn, each with its id.

        Those of the whole run were on the page too.
        """
        wait_for(
            lambda: all(len(self._heard(key)) >= 2 * n_times for key in keys),
            f"messages of {keys}",
            15,
        )
        for key in keys:
            events = [one["event"] for one in self._heard(key)]
            assert events == ["begin", "end"] * n_times, (key, events)
        ids = self.receiver.ids()
        assert len(set(ids)) == len(ids)
        assert {key for key in keys if not key[1]} <= self.on_page

    def _heard(self, key: Key) -> list[dict[str, Any]]:
        """Return the messages of a condition, in the order in which they came."""
        listed = tuple(self.receiver.heard)
        return [one for one in listed if (one["kind"], one["partition"]) == key]

    def assert_pill(self, partition: str, kind: ConditionKind) -> None:
        words = self.pills.get(partition, set())
        assert any(word.startswith(PILLS[kind]) for word in words), (partition, kind, words)


@contextmanager
def watching(run: RunProcess, receiver: Receiver) -> Iterator[Eyes]:
    """Look at a run in the foreground of its own process; it must have pages and the receiver."""
    wait_for(lambda: living_service(run.home) and run.is_open(), "the run to be served")
    holder = living_service(run.home)
    assert holder is not None
    token = (run.home / "token").read_text().strip()
    with httpx.Client(
        base_url=f"{holder.address}/api/v1",
        headers={"authorization": f"Bearer {token}"},
        trust_env=False,
        timeout=10.0,
    ) as client:
        yield Eyes(client, receiver)


def _says(shown: str, words: str) -> bool:
    """Whether it is these words; of a server that is away more follows, such as who waits."""
    return shown == words or (shown.startswith(f"{words} ") and " It is tried again " in shown)


def _without_figures(sentence: str) -> str:
    """Return a sentence without what changes from second to second."""
    return _FIGURES.sub("#", one_line(sentence))


def from_metrics(text: str) -> set[Key]:
    """Return what holds; the run's own metric says of each kind whether any holds."""
    active, of_partitions = set(), set()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "longwatch_condition_active" and sample.value:
                active.add(sample.labels["kind"])
            if sample.name == "longwatch_partition_condition_active" and sample.value:
                of_partitions.add((sample.labels["kind"], sample.labels["partition"]))
    kinds = {kind for kind, _ in of_partitions}
    assert kinds <= active
    return of_partitions | {(kind, "") for kind in active - kinds}
