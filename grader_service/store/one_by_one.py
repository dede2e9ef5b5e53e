"""Acts on rows one after another: one that fails is left as it is and reported, and does not stop the others."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from grader_service.errors import InfrastructureError

_MOST_TOLD = 5
_LONGEST = 200


class RowsLeft(InfrastructureError):
    """Some rows could not be handled, and wait for somebody to look at them; all others were.

    Args:
        left: their names, each with what went wrong.
        what: what they are, several of them.
        handled: how many others were.
    """

    def __init__(self, left: Mapping[str, str], what: str, handled: int) -> None:
        self.left, self.what, self.handled = left, what, handled
        told = "; ".join(f"{name} ({error[:_LONGEST]})" for name, error in list(left.items())[:_MOST_TOLD])
        super().__init__(f"{len(left)} of the {what} could not be handled, the others were: {told}")


def one_by_one(
    connection: Connection, rows: Iterable[Any], act: Callable[[Any], object], name: Callable[[Any], object]
) -> dict[str, str]:
    """Acts on each row in a savepoint of its own.

    Args:
        name: what to call one.

    Returns:
        Names of the rows that are left, each with what went wrong.

    Raises:
        DBAPIError: the connection was lost.
    """
    left: dict[str, str] = {}
    for row in rows:
        try:
            with connection.begin_nested():
                act(row)
        except Exception as error:
            if isinstance(error, DBAPIError) and error.connection_invalidated:
                raise
            left[str(name(row))] = f"{type(error).__name__}: {error}"
    return left


def tell(left: Mapping[str, str], what: str, handled: int = 0) -> None:
    """Says which rows are left, once the others are committed.

    Raises:
        RowsLeft: there are some.
    """
    if left:
        raise RowsLeft(left, what, handled)
