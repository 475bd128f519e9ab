"""${message}."""

import sqlalchemy as sa
from alembic import op

import headcount.site.models
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go up."""
    ${upgrades if upgrades else "pass"}
