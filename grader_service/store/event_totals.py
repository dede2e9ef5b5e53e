"""What the events came to that may be removed, so that figures go on where they were."""

from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from grader_service.store.retention_tables import FiguresRow


@dataclass(frozen=True)
class Totals:
    """As `service.event_figures` writes and reads it."""

    last_event: int
    """All events up to this id are in it."""
    document: str


_READ = select(FiguresRow.last_event, FiguresRow.document).where(FiguresRow.id == 1)


def read(connection: Connection) -> Totals:
    """The totals."""
    row = connection.execute(_READ).one()
    return Totals(row.last_event, row.document)


def hold(connection: Connection) -> Totals | None:
    """The same, which nobody else may replace until the transaction ends; None where somebody else is about to."""
    row = connection.execute(_READ.with_for_update(skip_locked=True)).one_or_none()
    return None if row is None else Totals(row.last_event, row.document)


def replace(connection: Connection, totals: Totals) -> None:
    """Keeps these in place of those that are held."""
    connection.execute(
        update(FiguresRow).where(FiguresRow.id == 1).values(last_event=totals.last_event, document=totals.document)
    )
