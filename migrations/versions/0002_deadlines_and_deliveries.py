"""deadlines and deliveries

Revision 0002, after 0001.
"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run", sa.Column("deadline_at_ms", sa.Integer(), nullable=True))
    op.add_column("partition", sa.Column("deadline_at_ms", sa.Integer(), nullable=True))
    op.create_table(
        "delivery",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("target", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("n_tries", sa.Integer(), nullable=False),
        sa.Column("next_try_at_ms", sa.Integer(), nullable=False),
        sa.Column("said", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activity.id"], name=op.f("fk_delivery_activity_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
        sa.UniqueConstraint("activity_id", "target", name=op.f("uq_delivery_activity_id_target")),
    )
    with op.batch_alter_table("delivery", schema=None) as batch_op:
        batch_op.create_index(
            "ix_delivery_waiting",
            ["next_try_at_ms"],
            unique=False,
            sqlite_where=sa.text("state = 'waiting'"),
            postgresql_where=sa.text("state = 'waiting'"),
        )


def downgrade() -> None:
    with op.batch_alter_table("delivery", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_delivery_waiting",
            sqlite_where=sa.text("state = 'waiting'"),
            postgresql_where=sa.text("state = 'waiting'"),
        )
    op.drop_table("delivery")
    op.drop_column("partition", "deadline_at_ms")
    op.drop_column("run", "deadline_at_ms")
