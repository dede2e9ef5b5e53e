"""Runs migrations on the connection that the caller opened; there is no offline mode."""

from alembic import context

from grader_service.store import regrade_tables, retention_tables, review_tables  # noqa: F401 - their tables belong to the schema too
from grader_service.store.tables import Base

connection = context.config.attributes["connection"]
sqlite = connection.dialect.name == "sqlite"
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=sqlite,
    transaction_per_migration=not sqlite,
)
with context.begin_transaction():
    context.run_migrations()
