"""Floor 2: the true figures of a run, from the ledger and from what the service remembers."""

from app.figures.collecting import collect
from app.figures.json_form import from_json, partition_to_json, to_json
from app.figures.shapes import PartitionFigures, RunFigures
from app.figures.speedometer import Speedometer

__all__ = [
    "PartitionFigures",
    "RunFigures",
    "Speedometer",
    "collect",
    "from_json",
    "partition_to_json",
    "to_json",
]
