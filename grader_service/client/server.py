"""One Redis server of the service, as a platform reaches it."""

from urllib.parse import urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError, RedisError
from redis.retry import Retry

from grader_service.client.errors import BrokerUnreachable, ClientError, InvalidRequest

_SILENT_S = 5.0
"""A server that has not answered for so long is behind a dead connection."""


class Server:
    """Connections to one Redis server.

    Args:
        url: with its password, and the user of a platform that has a name: `redis://USER:PASSWORD@HOST:PORT/0`;
            `rediss://` through TLS.
        name: by which errors call it.
        expected: what errors say should be there.

    Raises:
        InvalidRequest: this is no Redis URL.
    """

    def __init__(self, url: str, name: str, expected: str) -> None:
        self.name = name
        self._expected = expected
        try:
            parts = urlsplit(url)
            self.platform = (parts.username or "").removeprefix("platform-")
            """Name of the platform, with which ids of its submissions begin; empty where it has none."""
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

    def unreachable(self, what: str, error: RedisError) -> ClientError:
        """The error that says what this server did not do, and what to look at."""
        if isinstance(error, NoPermissionError):
            return InvalidRequest(
                f"{self.name} at {self.shown} {what}: {error}. Expected the user of a platform and, where it has a "
                f"name, an id of the submission that begins with it, such as {self.platform or 'lms'}:4711"
            )
        return BrokerUnreachable(
            f"{self.name} at {self.shown} {what}: {error}. Expected {self._expected} and, in the URL, its password "
            "(the file secrets/redis_password where the service was started)"
        )
