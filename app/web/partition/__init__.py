"""The page of one partition, and the table of a chart: see `page.py` and `table.py`."""

from app.web.partition.kind import partition_kind
from app.web.partition.table import table_kind

__all__ = ["partition_kind", "table_kind"]
