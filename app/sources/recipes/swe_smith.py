"""SWE-smith trajectories: an issue, then another agent's steps; `messages` is JSON text."""

from app.sources.contract import Conversation, Mode, Recipe, Row
from app.sources.turns import chat, identity


def read(row: Row) -> Conversation:
    return Conversation(chat(row, "messages"), None, identity(row, "traj_id"))


RECIPE = Recipe(
    name="swe_smith",
    about="SWE-smith trajectories: one prompt for each trajectory's issue",
    columns=frozenset({"messages", "instance_id", "traj_id"}),
    read=read,
    mode=Mode.FIRST_USER,
)
