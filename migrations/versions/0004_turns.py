"""turns of a conversation that wait for the answer to an earlier one

Revision 0004, after 0003.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_OVER = "awaited AND state NOT IN ('pending', 'running')"


def upgrade() -> None:
    op.add_column(
        "partition", sa.Column("n_waiting", sa.Integer(), server_default="0", nullable=False)
    )
    op.add_column("sample", sa.Column("turn", sa.Integer(), server_default="1", nullable=False))
    op.add_column("sample", sa.Column("awaited", sa.Boolean(), server_default="0", nullable=False))
    with op.batch_alter_table("sample", schema=None) as batch_op:
        for name, condition in (("ix_sample_awaited", "awaited"), ("ix_sample_due", _OVER)):
            batch_op.create_index(
                name,
                ["partition_id", "position"],
                unique=False,
                sqlite_where=sa.text(condition),
                postgresql_where=sa.text(condition),
            )


def downgrade() -> None:
    with op.batch_alter_table("sample", schema=None) as batch_op:
        for name, condition in (("ix_sample_due", _OVER), ("ix_sample_awaited", "awaited")):
            batch_op.drop_index(
                name, sqlite_where=sa.text(condition), postgresql_where=sa.text(condition)
            )
    op.drop_column("sample", "awaited")
    op.drop_column("sample", "turn")
    op.drop_column("partition", "n_waiting")
