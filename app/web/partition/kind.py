"""The page of one partition as a kind of page: `/runs/7/p/B1_glaive?range=1h`."""

from urllib.parse import quote

from fastapi import Request

from app.controls import find_run
from app.core.types import PartitionId, RunId
from app.extending.refusing import named
from app.web.charted import charted
from app.web.charts import known_range
from app.web.kinds import Desk, PageKey, PageKind
from app.web.partition.page import partition_page
from app.web.partition.reads import read
from app.web.sheet import Sheet


def partition_kind(desk: Desk) -> PageKind:
    def key(request: Request) -> PageKey:
        run = find_run(desk.ledger, request.path_params["run"])
        partition = named(desk.ledger, run, request.path_params["partition"])
        chosen = known_range(request.query_params.get("range", ""))
        return ("partition", run.id, partition.id, partition.name, chosen)

    def sheet(key: PageKey) -> Sheet | None:
        match key:
            case (_, int(run_id), int(partition_id), str(), str(chosen)):
                return _sheet(desk, RunId(run_id), PartitionId(partition_id), chosen)
        return None

    return PageKind(
        name="partition",
        path="/runs/{run}/p/{partition}",
        key=key,
        address=lambda key: f"/runs/{key[1]}/p/{quote(str(key[3]), safe='')}?range={key[4]}",
        sheet=sheet,
    )


def _sheet(desk: Desk, run_id: RunId, partition_id: PartitionId, chosen: str) -> Sheet | None:
    run = desk.service.figures(run_id)
    partition = next((each for each in run.partitions if each.id == partition_id), None)
    if partition is None:
        return None
    drawn = charted(desk, run, chosen, partition_id)
    return partition_page(run, partition, read(desk, run, partition_id), drawn, chosen)
