"""measures of answers, and the search of samples by key

Revision 0003, after 0002.
"""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "measure",
        sa.Column("partition_id", sa.Integer(), nullable=False),
        sa.Column("kind", sqlmodel.sql.sqltypes.AutoString(), nullable=False),
        sa.Column("hour_at_ms", sa.Integer(), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["partition_id"], ["partition.id"], name=op.f("fk_measure_partition_id")
        ),
        sa.PrimaryKeyConstraint(
            "partition_id", "kind", "hour_at_ms", "bucket", name=op.f("pk_measure")
        ),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("sample", schema=None) as batch_op:
        batch_op.create_index("ix_sample_key", ["partition_id", "key"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("sample", schema=None) as batch_op:
        batch_op.drop_index("ix_sample_key")
    op.drop_table("measure")
