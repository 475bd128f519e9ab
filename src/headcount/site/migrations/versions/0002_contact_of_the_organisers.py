"""The lab says how its organisers are reached."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; labs from before have no contact."""
    with op.batch_alter_table("lab") as table:
        table.add_column(
            sa.Column("contact", sa.String(length=200), nullable=False, server_default="")
        )
