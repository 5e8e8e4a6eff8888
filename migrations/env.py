"""Alembic's environment: one SQLite file, batch mode, the metadata of the ledger's tables."""

from alembic import context
from sqlalchemy import create_engine

from app.ledger import tables

TARGET = tables.Base.metadata

engine = create_engine(context.config.get_main_option("sqlalchemy.url") or "sqlite://")
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=TARGET, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()
engine.dispose()
