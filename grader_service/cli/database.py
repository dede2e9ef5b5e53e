"""The service's database, as the settings of a command's shell name it."""

from typing import TYPE_CHECKING

from grader_service.settings import Settings

if TYPE_CHECKING:
    from grader_service.store.engine import Store


def service_store() -> "Store":
    """Opens it, in the role in which operators act.

    Raises:
        ConfigurationError: its schema is another version's.
        StoreUnavailable: it does not answer.
    """
    from grader_service import wiring  # noqa: PLC0415 - commands that need no database should not wait for its driver

    return wiring.operator_store(Settings())
