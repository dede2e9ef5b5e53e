"""Celery's Redis transport, which a message that is none would otherwise end together with its worker."""

from queue import Empty
from typing import Any

import structlog
from kombu.transport import redis, virtual
from redis import Redis
from redis.lock import Lock

log = structlog.get_logger(__name__)


class QoS(redis.QoS):  # type: ignore[misc]
    """Forgets a message that was acknowledged, whether Redis heard of it or not.

    Kombu keeps the place of a message whose acknowledgement Redis refused (away, or loading its data after a restart),
    Celery goes on, and a worker that has one place takes nothing any more. A wake-up may come twice.
    """

    def ack(self, delivery_tag: str) -> None:
        """Gives the place back first."""
        virtual.QoS.ack(self, delivery_tag)
        self._remove_from_indices(delivery_tag).execute()

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature is Kombu's
        """The same for a message that is refused."""
        virtual.QoS.ack(self, delivery_tag)
        super().reject(delivery_tag, requeue)


class Client(Redis):
    """Runs no script: the users of our workers in Redis may not."""

    def lock(self, *arguments: Any, **options: Any) -> Any:
        """A lock that runs out, and is not released by redis-py's script; Kombu restores messages under one."""
        return super().lock(*arguments, **options | {"lock_class": _RunsOut})


class _RunsOut(Lock):
    def do_release(self, expected_token: Any) -> None:
        pass


class Channel(redis.Channel):  # type: ignore[misc]
    """Drops what cannot be read: on our own queues it is no wake-up, and wake-ups may be lost."""

    QoS = QoS

    def _get_client(self) -> type[Redis]:
        return Client

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            log.error("unreadable_wake_up", error=f"{type(error).__name__}: {str(error)[:200]}")  # noqa: TRY400
            raise Empty from None


class Transport(redis.Transport):  # type: ignore[misc]
    """For `broker_transport`."""

    Channel = Channel
