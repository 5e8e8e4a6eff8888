"""Floor 2: the true figures of a run, from the ledger and from what the service remembers."""

from app.figures.collecting import collect
from app.figures.concerns import concerns, pressing, standstill
from app.figures.json_form import from_json, partition_to_json, to_json
from app.figures.load_form import load_from_json, load_to_json
from app.figures.looking import Beside
from app.figures.remarks import outcomes
from app.figures.shapes import PartitionFigures, RunFigures, total_counts
from app.figures.speedometer import Speedometer

__all__ = [
    "Beside",
    "PartitionFigures",
    "RunFigures",
    "Speedometer",
    "collect",
    "concerns",
    "from_json",
    "load_from_json",
    "load_to_json",
    "outcomes",
    "partition_to_json",
    "pressing",
    "standstill",
    "to_json",
    "total_counts",
]
