"""POST route that sends a test message to whoever is told outside.

Takes no address and no text: targets are the operator's, from the environment of the service.
"""

from fastapi import APIRouter, Request

from app.api.door import ServiceDoor
from app.api.schemas_reading import Answer
from app.errors import ConflictError


class TargetAnswer(Answer):
    """What one target answered; of its address only the host is shown."""

    target: str
    is_ok: bool
    said: str


class NotifyTestAnswer(Answer):
    is_ok: bool
    targets: list[TargetAnswer]


def no_target() -> ConflictError:
    return ConflictError(
        "no target for notifications is set",
        hint="set LONGWATCH_NOTIFY_URL or LONGWATCH_NOTIFY_COMMAND and start the service again",
    )


def notifying_routes(service: ServiceDoor) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["change"])

    @router.post("/notify-test", summary="Send a test message to whoever is told outside")
    async def notify_test(request: Request) -> NotifyTestAnswer:
        """Send a test message to every target, and wait for what each answers (half a minute)."""
        if not service.notified():
            raise no_target()
        told = await service.notify_test(request.state.who)
        answers = [TargetAnswer(target=t.target, is_ok=t.is_ok, said=t.said) for t in told]
        return NotifyTestAnswer(is_ok=all(t.is_ok for t in told), targets=answers)

    return router
