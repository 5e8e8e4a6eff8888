"""What page, frames, API and `/metrics` show of a run at one tick, and whether they say the same.

Owns the reading of each form. The API is exact; a page rounds, so its words are held against the
API's figures by rules that stand here and not in the program.
"""

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import httpx
import orjson
from prometheus_client.parser import text_string_to_metric_families

from app.core.states import SampleState

Json = dict[str, Any]
SAMPLE_STATES = tuple(str(state) for state in SampleState)
_VOID = frozenset({"input", "meta", "link", "br", "hr", "img"})
_SCALES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_SHORT = r"(\d+)(?:\.(\d+))?([kMG]?)"


class Cells(HTMLParser):
    """Texts and attributes of all elements that have an id."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.attrs: dict[str, dict[str, str | None]] = {}
        self.title = ""
        self._open: list[tuple[str, str]] = []
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("id") or ""
        if name:
            self.texts[name], self.attrs[name] = "", dict(attrs)
        if tag not in _VOID:
            self._open.append((tag, name))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag not in _VOID and self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag, name = self._open[-1] if self._open else ("", "")
        if tag == "title":
            self.title += data
        if name:
            self.texts[name] += data


class Follower:
    """A browser that keeps a page by its frames: each is what changed since the last."""

    def __init__(self, client: httpx.Client, root: str) -> None:
        self._client = client
        self._address = f"{root}/frame"
        page = client.get(root, headers={"accept": "text/html"})
        assert page.status_code == 200, page.text
        self.cells = Cells(page.text)
        found = re.search(r'data-structure="(\w+)"', page.text)
        assert found is not None
        self._structure, self._seq = found[1], ""
        self.at = ""
        self.sizes: list[tuple[int, bool]] = []

    def look(self) -> None:
        """Ask for what is new, and apply it."""
        query = {"has": self._structure, "after": self._seq}
        answer = self._client.get(self._address, params=query)
        assert answer.status_code == 200, answer.text
        self.sizes.append((len(answer.content), b'"html"' in answer.content))
        self._apply(orjson.loads(answer.content))

    def _apply(self, frame: Json) -> None:
        fresh = Cells(frame.get("html", ""))
        for name, attrs in fresh.attrs.items():
            self.cells.attrs[name], self.cells.texts[name] = attrs, fresh.texts[name]
        self.cells.texts.update(frame.get("texts", {}))
        for name, attrs in frame.get("attrs", {}).items():
            self.cells.attrs.setdefault(name, {}).update(attrs)
        self.cells.title = frame.get("title", self.cells.title)
        self._structure = frame.get("structure", self._structure)
        self._seq, self.at = frame["seq"], frame["at"]


def assert_figures_are_whole(run: Json) -> None:
    """States sum to the total, tokens to what was received; the run is the sum of its parts."""
    for each in (run, *run["partitions"]):
        counts, tokens = each["samples"], each["tokens"]
        assert sum(counts[state] for state in SAMPLE_STATES) == counts["total"]
        parts = ("kept_tokens", "wasted_tokens", "held_tokens")
        assert sum(tokens[part] for part in parts) == tokens["received_tokens"], each["name"]
        assert tokens["used_tokens"] == tokens["kept_tokens"] + tokens["held_tokens"]
    for what in ("samples", "tokens"):
        for key, total in run[what].items():
            assert total == sum(each[what][key] for each in run["partitions"]), key
    inside = [each["in_flight_requests"] for each in run["partitions"]]
    assert run["in_flight_requests"] == sum(inside)
    for each in run["partitions"]:
        assert each["percent"] == _percent(each), each


def _percent(each: Json) -> int:
    """Return whichever end is nearer, rounded down; 100 only when nothing more will come."""
    counts, goal = each["samples"], each["goal_samples"]
    usable = counts["total"] - counts["rejected"]
    if each["is_over"]:
        return 100
    if each["intake"] == "scanning":
        return 0
    done = counts["kept"] + (counts["failed"] if goal is None else 0)
    shares = [100 * done // min(usable, goal or usable)]
    if each["token_budget_tokens"]:
        shares.append(100 * each["tokens"]["used_tokens"] // each["token_budget_tokens"])
    return int(min(99, max(shares)))


def assert_page_shows(cells: Cells, run: Json) -> None:
    """The page's words are the API's figures."""
    texts, attrs = cells.texts, cells.attrs
    counts = run["samples"]
    wanted = sum(_wanted(each) for each in run["partitions"])
    assert texts["pct"] == f"{run['percent']} %"
    kept = f"{counts['kept']:,} of {max(wanted, counts['kept']):,}"
    assert texts["pct-n"] == f"{kept}{_failed(counts)}"
    _assert_short(texts["pct-t"].split(" ")[0], run["tokens"]["used_tokens"])
    assert attrs["all-b"]["aria-valuenow"] == str(run["percent"])
    assert str(attrs["all-b"]["aria-valuetext"]).split(", ")[1].split(" ")[0] == (
        f"{counts['running']:,}"
    )
    assert texts["speed-a"].split(" ")[0] == f"{run['in_flight_requests']:,}"
    assert f"{run['percent']} %" in cells.title
    for each in run["partitions"]:
        _assert_row_shows(texts, attrs, each, rests=run["state"] == "paused")


def _failed(counts: Json) -> str:
    return f", {counts['failed']:,} failed" if counts["failed"] else ""


def _wanted(each: Json) -> int:
    usable = each["samples"]["total"] - each["samples"]["rejected"]
    return int(min(usable, each["goal_samples"] or usable))


def _assert_row_shows(
    texts: Mapping[str, str],
    attrs: Mapping[str, Mapping[str, str | None]],
    each: Json,
    *,
    rests: bool,
) -> None:
    key, counts, kept = f"p{each['id']}", each["samples"], each["samples"]["kept"]
    words = texts[f"{key}-w"].split(" · ")
    assert words[0] in (f"{each['percent']} %", f"{each['percent']} % of the budget")
    assert words[1] == f"{kept:,} of {max(_wanted(each), kept):,} samples{_failed(counts)}"
    used, _, budget = words[2].removesuffix(" tokens").partition(" of ")
    _assert_short(used, each["tokens"]["used_tokens"])
    assert bool(budget) is (each["token_budget_tokens"] is not None)
    if budget:
        _assert_short(budget, each["token_budget_tokens"])
    assert texts[f"{key}-f"] == f"{counts['failed']:,}"
    flying = each["in_flight_requests"]
    if flying or not each["is_over"]:
        # "72 in flight", or "72 of 96 in flight" while so many are not there yet
        assert texts[f"{key}-n"].split(" in flight")[0].split(" of ")[0] == f"{flying:,}"
    asked = each["concurrency_requests"]
    if f"{key}-c" in attrs and not each["is_over"]:
        assert (attrs[f"{key}-c"].get("value") or "") == ("" if asked is None else str(asked))
    kind = attrs[key]["data-kind"]
    if each["is_over"]:
        assert kind in ("done", "idle", "drain"), each
    else:
        assert (kind == "pause") is (rests or each["state"] == "paused"), (kind, each)


def _assert_short(shown: str, exact: int) -> None:
    """A number in few digits is the exact one, rounded down."""
    found = re.fullmatch(_SHORT, shown)
    assert found is not None, shown
    whole, part, unit = found[1], found[2] or "", found[3]
    step = _SCALES[unit] / 10 ** max(len(part), 3 - len(whole) if unit else 0)
    value = float(f"{whole}.{part or 0}") * _SCALES[unit]
    assert value <= exact < value + step + 1e-6, (shown, exact)


def assert_metrics_show(text: str, run: Json) -> None:
    """Each figure of the exposition is the API's, and what the API does not know is absent."""
    found = {
        (sample.name, *(sample.labels.get(key, "") for key in ("partition", "state", "kind"))): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("run") == run["name"]
    }
    wanted: dict[tuple[str, ...], float] = {}
    for each in run["partitions"]:
        wanted |= _metrics_of(each)
    wanted["longwatch_run_progress_ratio", "", "", ""] = run["percent"] / 100
    wanted["longwatch_run_state", "", run["state"], ""] = 1
    names = {name for name, *_ in wanted}
    assert {key: n for key, n in found.items() if key[0] in names} == wanted


def _metrics_of(each: Json) -> dict[tuple[str, ...], float]:
    name, tokens = each["name"], each["tokens"]
    values: dict[tuple[str, ...], float | None] = {
        ("longwatch_samples", name, state, ""): each["samples"][state] for state in SAMPLE_STATES
    }
    values["longwatch_received_tokens_total", name, "", ""] = tokens["received_tokens"]
    values["longwatch_wasted_tokens_total", name, "", ""] = tokens["wasted_tokens"]
    for kind in ("kept", "held"):
        values["longwatch_tokens", name, "", kind] = tokens[f"{kind}_tokens"]
    values["longwatch_tokens", name, "", "reserved"] = each["reserved_tokens"]
    values["longwatch_token_budget_tokens", name, "", ""] = each["token_budget_tokens"]
    values["longwatch_in_flight_requests", name, "", ""] = each["in_flight_requests"]
    values["longwatch_concurrency_requests", name, "", ""] = each["concurrency_requests"]
    values["longwatch_speed_tokens_per_second", name, "", ""] = each["speed_tokens_per_s"]
    return {key: n for key, n in values.items() if n is not None}
