"""What the events came to that may be removed, so that figures go on where they were."""

from sqlalchemy import Connection, Row, select, update

from grader_service.store.retention_tables import FiguresRow

Totals = Row[int, str]
"""`last_event` and `document` of the one row; `service.event_figures` writes and reads the document."""
_READ = select(FiguresRow.last_event, FiguresRow.document).where(FiguresRow.id == 1)


def read(connection: Connection) -> Totals:
    """The totals."""
    return connection.execute(_READ).one()


def hold(connection: Connection) -> Totals | None:
    """The same, which nobody else may replace until the transaction ends; None where somebody else is about to."""
    return connection.execute(_READ.with_for_update(skip_locked=True)).one_or_none()


def replace(connection: Connection, last_event: int, document: str) -> None:
    """Keeps these in place of those that are held."""
    connection.execute(update(FiguresRow).where(FiguresRow.id == 1).values(last_event=last_event, document=document))
