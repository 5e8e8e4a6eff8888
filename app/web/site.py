"""All pages together: what the service mounts, and the live figures that it ticks.

Owns the composition of this package and nothing else.
"""

from app.api import ServiceDoor
from app.api.app import Pages
from app.clock import Clock
from app.gate import Keys
from app.gate.refusals import LOGIN_PATH
from app.ledger.db import Ledger
from app.web.actions import action_routes
from app.web.activity import activity_kind
from app.web.assets import CDN_ONLY, Offering, asset_routes, own_assets
from app.web.compare import compare_kind
from app.web.failures import asking_kind, failure_forms, failures_kind
from app.web.gallery import gallery_routes
from app.web.kinds import Desk, Fresh
from app.web.limit_forms import limit_forms
from app.web.live import LivePages
from app.web.login import login_routes
from app.web.new_run import Checks, new_run_routes, review_kind
from app.web.notifying import notifying_forms
from app.web.overview_kind import overview_kind
from app.web.pages import error_page, page_routes
from app.web.partition import partition_kind, table_kind
from app.web.questions import question_routes
from app.web.rendering import draw
from app.web.runs_kind import runs_kind
from app.web.samples import one_sample_kind, sample_forms, samples_kind
from app.web.server_page import server_kind
from app.web.streaming import live_routes


class Site:
    """See the module. `live.tick()` follows each look of the recorder, `close()` the end."""

    def __init__(
        self,
        ledger: Ledger,
        service: ServiceDoor,
        keys: Keys,
        clock: Clock,
        offered: Offering = CDN_ONLY,
    ) -> None:
        desk = Desk(ledger=ledger, service=service, clock=clock, fresh=Fresh(clock))
        self._checks = Checks(ledger, service, clock)
        kinds = (
            runs_kind(desk),
            overview_kind(desk),
            partition_kind(desk),
            table_kind(desk),
            activity_kind(desk),
            samples_kind(desk),
            one_sample_kind(desk),
            failures_kind(desk),
            asking_kind(desk),
            server_kind(desk),
            compare_kind(desk),
            review_kind(desk, self._checks),
        )
        sheets = {kind.name: kind.sheet for kind in kinds}
        assets = own_assets()
        self.live = LivePages(lambda key: sheets[str(key[0])](key), clock, draw, assets.version)
        keys.changed = self.live.dismiss
        self.pages = Pages(
            routers=(
                login_routes(keys, assets.style),
                asset_routes(offered),
                live_routes(self.live, kinds),  # before the pages: /runs/live is no run
                page_routes(ledger, kinds),
                new_run_routes(desk, self._checks),
                gallery_routes(service),
                notifying_forms(service),
                question_routes(ledger, service, clock),
                sample_forms(desk),
                failure_forms(desk),
                limit_forms(ledger, service, clock),  # before those that take any verb
                action_routes(ledger, service, clock),
            ),
            open_paths=frozenset({LOGIN_PATH, assets.style, assets.icon}),
            error_page=error_page,
            with_cdn=offered.with_cdn,
            shared={"offered": offered},
        )

    async def close(self) -> None:
        """Let every stream end, and what new runs are checked or started for."""
        self.live.close()
        await self._checks.close()
