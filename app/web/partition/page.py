"""The page of one partition as one sheet: head, bars, why it stands, chart, lengths, samples.

Owns the assembly and the tiles. Pure: everything that is shown is handed in. Invariant: each figure
has what makes it mean something beside it.
"""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from app.core import format as words
from app.core.estimate import wanted_samples
from app.core.landing import end_words
from app.core.spread import Measure
from app.core.states import RunState
from app.figures import PartitionFigures, RunFigures
from app.figures.remarks import outcomes
from app.web import charts, head
from app.web.bars import bar, is_over, lay
from app.web.charted import Charted
from app.web.charts import Place
from app.web.draft import Draft
from app.web.lengths import Answers, lengths
from app.web.partition.lists import failures, samples, settings, times
from app.web.partition.reads import Read
from app.web.partition.standstill import standstill
from app.web.rows import about_row, control_cells, left_cells
from app.web.sheet import Block, Sheet
from app.web.standing import standing
from app.web.wording import exact_rate, rate

_SPARK_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    name: str
    has_budget: bool
    is_over_budget: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the page is and what leads on from it."""

    run_id: int
    name: str
    chosen: str

    @property
    def here(self) -> str:
        return f"/runs/{self.run_id}/p/{quote(self.name, safe='')}"

    @property
    def table(self) -> str:
        query = urlencode({"partition": self.name, "range": self.chosen})
        return f"/runs/{self.run_id}/chart?{query}"


def partition_page(
    run: RunFigures, partition: PartitionFigures, known: Read, drawn: Charted, chosen: str
) -> Sheet:
    """Return the page of one partition; `chosen` is the range of its chart."""
    draft = Draft(run.at)
    at = Address(run_id=run.run_id, name=partition.name, chosen=chosen)
    place = Place(of=words.one_line(partition.name), address=at.here, table=at.table)
    answers = Answers(
        lengths=known.spread(Measure.OUTPUT), n_cut=known.spread(Measure.OUTPUT_CUT).n
    )
    children = (
        head.signals(draft, run, ""),
        head.banner(draft, run),
        _head(draft, run, partition),
        _bars(draft, run, partition),
        _sentences(draft, run, partition),
        charts.chart(draft, run, drawn.chart, chosen, drawn.marks, place),
        lengths(
            draft,
            answers,
            partition.max_new_tokens,
            of=words.plural(answers.lengths.n, "answer"),
            table=at.table,
        ),
        times(draft, known),
        failures(run, partition, known),
        samples(run, partition, known),
        settings(run, partition, known),
    )
    root = Block(id="page", template="partition/page.html", children=children)
    is_ended = run.state in (RunState.STOPPED, RunState.FINISHED)
    speed = partition.speed_tokens_per_s
    moving = f" · {rate(speed)} tok/s" if speed is not None else ""
    title = f"{partition.percent} %{moving} · {words.one_line(partition.name)}"
    return draft.sheet(root, title, None if is_ended else run.at)


def _head(draft: Draft, run: RunFigures, partition: PartitionFigures) -> Block:
    pill, key = standing(run, partition), f"p{partition.id}"
    draft.text("pp-state", pill.word)
    draft.spoken(f"{key} {pill.plain_word}", f"{partition.name}: {pill.plain_word.lower()}.")
    control_cells(draft, run, partition, key)
    about = about_row(run, partition, pill, key)
    return Block(id="phead", template="partition/head.html", about=about)


def _bars(draft: Draft, run: RunFigures, partition: PartitionFigures) -> Block:
    _samples_bar(draft, partition)
    _tokens_bar(draft, partition)
    draft.text("pp-speed", rate(partition.speed_tokens_per_s))
    why_none = "nothing is generated now" if partition.speed_tokens_per_s is None else ""
    draft.attr("pp-speed", title=exact_rate(partition.speed_tokens_per_s) or why_none)
    draft.text("pp-mean", _mean(partition))
    age = "" if partition.last_token_at is None else words.age(partition.last_token_at, run.at)
    is_moving = run.state is RunState.RUNNING and not partition.is_over and age
    draft.text("pp-last", f"newest token {age}" if is_moving else "")
    left, below = left_cells(run, partition, standing(run, partition))
    draft.text("pp-left", left)
    draft.text("pp-range", below)
    draft.clock("pp-end", partition.sealed_at if left == "done" else None)
    about = Bars(
        name=partition.name,
        has_budget=partition.token_budget_tokens is not None,
        is_over_budget=is_over(partition.ends),
    )
    return Block(id="pbars", template="partition/bars.html", about=about)


def _samples_bar(draft: Draft, partition: PartitionFigures) -> None:
    counts, goal = partition.counts, partition.goal_samples
    lengths_of = bar(counts, goal, 0, None, partition.percent)
    wanted = max(wanted_samples(counts, goal), counts.kept)
    draft.text("pp-n", f"{counts.kept:,}")
    draft.text("pp-of", f"of {wanted:,}")
    draft.attr(
        "pp-s-b",
        aria_valuenow=str(round(lengths_of.done)),
        aria_valuetext=f"{counts.kept:,} of {wanted:,} samples",
    )
    lay(draft, "pp-s", lengths_of)
    said = [f"{counts.running:,} in flight"] if counts.running else []
    said += [
        f"{n:,} {how}"
        for n, how in (
            (counts.truncated, "truncated"),
            (counts.suspect, "suspect"),
            (counts.empty, "empty"),
            (counts.failed, "failed"),
            (counts.rejected, "rejected"),
        )
        if n
    ]
    draft.text("pp-how", " · ".join(said) or f"{counts.pending:,} to come")


def _tokens_bar(draft: Draft, partition: PartitionFigures) -> None:
    tokens, budget = partition.tokens, partition.token_budget_tokens
    draft.text("pp-t", words.tokens(tokens.used))
    draft.text("pp-tof", f"of {words.tokens(budget)}" if budget is not None else "no budget")
    if budget is not None:
        spent = min(100.0, 100 * tokens.used / budget) if budget else 100.0
        said = f"{int(spent)} % of the token budget"
        draft.attr("pp-tb", aria_valuenow=str(int(spent)), aria_valuetext=said)
        draft.attr("pp-td", width=f"{int(10 * spent) / 10:g}")
    parts = [f"{words.tokens(tokens.kept)} kept"]
    if tokens.held:
        parts.append(f"{words.tokens(tokens.held)} half written")
    if tokens.wasted:
        parts.append(f"{words.tokens(tokens.wasted)} wasted")
    if partition.ends is not None:
        parts.append(end_words(partition.ends))
    draft.text("pp-what", " · ".join(parts))


def _mean(partition: PartitionFigures) -> str:
    known = [value for value in partition.spark_tokens_per_s if value is not None]
    if not known:
        return ""
    return f"{rate(sum(known) / len(known))} mean of {words.span(len(known) * _SPARK_S)}"


def _sentences(draft: Draft, run: RunFigures, partition: PartitionFigures) -> Block:
    """Return what holds of this partition, and why it stands, each a sentence."""
    found = [one for one in run.conditions if one.partition == partition.name]
    said = [(str(one.kind).capitalize(), words.one_line(one.sentence)) for one in found]
    if partition.reason:
        said.append(("Paused", words.one_line(partition.reason)))
    why = standstill(run, partition)
    if why:
        said.append(("Standstill", why))
    # pill, tile and condition say these
    shown = {"reading the prompts", *outcomes(partition.counts), *(str(one.kind) for one in found)}
    said += [("", words.one_line(each)) for each in partition.remarks if each not in shown]
    for n, (_, sentence) in enumerate(said):
        draft.text(f"pp-s{n}", sentence)
    kinds = tuple(kind for kind, _ in said)
    return Block(id="psaid", template="partition/sentences.html", about=kinds)
