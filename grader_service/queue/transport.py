"""Celery's Redis transport, which a message that is none would otherwise end together with its worker."""

from queue import Empty
from typing import Any

import structlog
from kombu.transport import redis

log = structlog.get_logger(__name__)


class Channel(redis.Channel):  # type: ignore[misc]
    """Drops what cannot be read: on our own queues it is no hint, and hints may be lost."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            log.error("unreadable_hint", error=f"{type(error).__name__}: {str(error)[:200]}")  # noqa: TRY400
            raise Empty from None


class Transport(redis.Transport):  # type: ignore[misc]
    """For `broker_transport`."""

    Channel = Channel
