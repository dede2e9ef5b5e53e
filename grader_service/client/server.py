"""One Redis server of the service, as a platform reaches it."""

from typing import ClassVar
from urllib.parse import urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from grader_service.client.errors import BrokerUnreachable, InvalidRequest

_SILENT_S = 5.0
"""A server that has not answered for so long is behind a dead connection."""


class Server:
    """Connections to one Redis server; its name in errors, and what is expected of it there.

    Args:
        url: with its password: `redis://:PASSWORD@HOST:PORT/0`; `rediss://` through TLS.

    Raises:
        InvalidRequest: this is no Redis URL.
    """

    name: ClassVar[str]
    expected: ClassVar[str]

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            self.shown = f"{parts.scheme}://{parts.hostname}:{parts.port or 6379}{parts.path}"  # without the password
            self.redis = Redis.from_url(
                url,
                socket_timeout=_SILENT_S,
                socket_connect_timeout=_SILENT_S,
                retry=Retry(NoBackoff(), 1),  # for a connection of the pool that ended meanwhile
            )
        except ValueError as error:
            raise InvalidRequest(
                f"the URL of {self.name} cannot be used: {error}. Expected redis://:PASSWORD@HOST:PORT/0 with the "
                "service's password in it"
            ) from None

    def unreachable(self, what: str, error: RedisError) -> BrokerUnreachable:
        """The error that says what this server did not do, and what to look at."""
        return BrokerUnreachable(
            f"{self.name} at {self.shown} {what}: {error}. Expected {self.expected} and, in the URL, its password "
            "(the file secrets/redis_password where the service was started)"
        )


class Broker(Server):
    """Where submissions are posted; results are there too where the service has no other Redis for them."""

    name: ClassVar[str] = "the broker"
    expected: ClassVar[str] = "the service's Redis"


class Results(Server):
    """Where results are read when that is not the broker."""

    name: ClassVar[str] = "the results' Redis"
    expected: ClassVar[str] = "the Redis that the service's GRADER_RESULT_URL names"
