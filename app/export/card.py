"""The card of a merged dataset, as dataset hubs show it: where it is from and what was left out.

Owns its words. Pure.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from app.export.tally import PartitionTally

_HEADS = ("partition", "source", "samples", "records", "tokens", "p50", "p95", "longest", "cut")


def card_of(facts: dict[str, Any], tallies: Sequence[PartitionTally]) -> str:
    """Return the card as Markdown with its YAML head."""
    return "\n".join(_lines(facts, tallies)) + "\n"


def _lines(facts: dict[str, Any], tallies: Sequence[PartitionTally]) -> Iterator[str]:
    models = sorted({model for each in facts["gen_ids"].values() if (model := _model_of(each))})
    yield from ("---", "license: other")
    if models:
        yield from ("base_model:", *(f"- {_quoted(model)}" for model in models))
    yield from ("configs:", "- config_name: default", "  data_files: data/train-*.jsonl", "---", "")
    yield "# Training data"
    yield ""
    yield (
        "Token ids with a mask of what is supervised (`input_ids`, `loss_mask`), one record a line."
        " The ids are those the model was sent and those it made; nothing was encoded again."
    )
    yield ""
    yield f"| {' | '.join(_HEADS)} |"
    yield f"|{'---|' * len(_HEADS)}"
    sources = facts["sources"]
    for each in tallies:
        p50, p95, longest = each.percentiles()
        cells = (
            each.name,
            sources.get(each.name) or "not recorded",
            f"{each.n_samples:,}",
            f"{each.n_kept:,}",
            f"{each.n_tokens:,}",
            *(f"{length:,}" for length in (p50, p95, longest)),
            f"{each.cut_share:.1%}",
        )
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
    yield ""
    yield "*cut*: the share of the records that the limit of new tokens ended."
    yield ""
    yield "## Left out"
    yield ""
    for each in tallies:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted(each.dropped.items()))
        yield f"- {_cell(each.name)}: {reasons or 'nothing'}"
    yield from _limits(facts)


def _limits(facts: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## Known limits", "")
    if facts["unfinished_runs"]:
        runs = ", ".join(facts["unfinished_runs"])
        yield f"- Merged while these runs had not ended: {_cell(runs)}."
    yield "- Earlier answers inside a prompt are the dataset's own, not this model's, unless the"
    yield "  partition was generated turn by turn."
    yield "- Licences and attribution are those of the sources above; look before you publish."
    yield ""
    yield "`manifest.json` has the settings of each `gen_id`, the counts, and the files."


def _model_of(entry: object) -> str | None:
    """Return the model that a run's manifest names in an entry, if it does."""
    if not isinstance(entry, dict):
        return None
    identity = entry.get("identity")
    places = [entry, identity if isinstance(identity, dict) else {}]
    servers = entry.get("servers")
    if isinstance(servers, dict):
        places += [each for each in servers.values() if isinstance(each, dict)]
    names = (place.get("model_path") or place.get("model") for place in places)
    return next((name for name in names if isinstance(name, str)), None)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{" ".join(escaped.split())}"'
