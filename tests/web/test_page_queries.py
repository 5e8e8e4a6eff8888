"""No page asks the ledger for a walk over the samples, whatever its address asks for."""

from tests.api.conftest import Door
from tests.api.home import Home
from tests.ledger.plans import recorded, scans
from tests.web.test_actions import somebody

PAGES = (
    "/",
    "/runs/1",
    "/runs/1?state=attention&sort=eta&q=b&range=all",
    "/runs/1/p/B1_chat",
    "/runs/1/chart?partition=B1_chat",
    "/runs/1/chart",
    "/runs/1/failures",
    "/runs/1/failures?partition=B1_chat&state=failed&reason=500",
    "/runs/1/failures/retry",
    "/runs/1/samples",
    "/runs/1/samples?partition=B2_code&state=ok&after=3",
    "/runs/1/samples?q=a",
    "/runs/1/samples/1",
    "/runs/1/activity",
    "/runs/1/activity?who=anna&event=state&partition=B1_chat&at=1",
    "/runs/1/server",
    "/runs/1/stop",
    "/compare?a=1&b=2",
    "/new",
)


async def test_each_page_finds_its_rows_by_an_index(home: Home, door: Door) -> None:
    home.add_run("another")
    async with somebody(home, door) as client:
        with recorded(home.ledger) as asked:
            for address in PAGES:
                answer = await client.get(address)
                assert answer.status_code == 200, (address, answer.text)
        assert len({each.statement for each in asked}) > 20
        assert scans(home.ledger, asked, "sample") == {}
