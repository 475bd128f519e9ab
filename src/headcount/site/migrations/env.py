"""Alembic's environment: migrations run on the connection that `migrate` hands over."""

from alembic import context

from headcount.site.models import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
