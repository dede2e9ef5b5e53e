"""Looks at a Redis before anything is entrusted to it, and at how full it is."""

from collections.abc import Mapping

from redis import Redis
from redis.exceptions import NoPermissionError, RedisError

from grader_service.errors import ConfigurationError, InfrastructureError
from grader_service.queue.app import JUDGE_QUEUES
from grader_service.service.readiness import BROKER, RESULTS

OLDEST = (7, 0)
SETTINGS: Mapping[str, str] = {BROKER: "GRADER_REDIS_URL", RESULTS: "GRADER_RESULT_URL"}
"""The setting that says where each is."""


def require_answer(redis: "Redis", name: str = BROKER) -> None:
    """Asks whether it is there, and lets this worker do its work.

    Raises:
        InfrastructureError: it does not, or it does not answer.
    """
    try:
        redis.llen(JUDGE_QUEUES[0])  # which a platform may not ask of the broker
    except NoPermissionError as error:
        raise InfrastructureError(
            f"the Redis for {name} does not let this worker work: {error}; expected its own user in {SETTINGS[name]}, "
            "such as redis://judge@HOST:6379/0, and that user's password (docs/operations.md, users of Redis)"
        ) from error
    except RedisError as error:
        raise InfrastructureError(
            f"the Redis for {name} does not answer: {error}; start it, or correct {SETTINGS[name]}"
        ) from error


def fullness(servers: Mapping[str, "Redis"]) -> dict[str, float]:
    """How much of its `maxmemory` each one uses; those without a limit, or an answer, are absent."""
    found = {}
    for name, redis in servers.items():
        try:
            memory = redis.info("memory")
        except RedisError:
            continue
        if memory.get("maxmemory"):
            found[name] = memory["used_memory"] / memory["maxmemory"]
    return found


def unsafe(redis: "Redis") -> list[str]:
    """What about this Redis could lose messages; empty when nothing.

    Raises:
        InfrastructureError: it does not answer.
    """
    problems = []
    try:
        server = redis.info("server")
        persistence = redis.info("persistence")
        memory = redis.info("memory")
    except RedisError as error:
        raise InfrastructureError(f"Redis does not answer: {error}") from error
    version = tuple(int(part) for part in str(server.get("redis_version", "0.0")).split(".")[:2])
    if version < OLDEST:
        problems.append(f"it is version {server.get('redis_version')}; {OLDEST[0]}.{OLDEST[1]} or newer is needed")
    if not persistence.get("aof_enabled"):
        problems.append("it keeps no append-only file and forgets its queues when it restarts: set appendonly yes")
    policy = memory.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        problems.append(
            f"its policy {policy} may throw queues away when memory is short: set maxmemory-policy noeviction"
        )
    if redis.connection_pool.connection_kwargs.get("password") is None:
        problems.append("it asks for no password, so that anybody who reaches it can post and read: set requirepass")
    return problems


def require_safe(servers: Mapping[str, "Redis"], *, production: bool) -> list[str]:
    """Refuses an unsafe Redis in production, and returns what to warn of elsewhere.

    Raises:
        ConfigurationError: in production, with everything that is wrong.
        InfrastructureError: one does not answer.
    """
    problems = [f"the Redis for {name}: {problem}" for name, redis in servers.items() for problem in unsafe(redis)]
    if problems and production:
        raise ConfigurationError("not safe for a queue: " + "; ".join(problems))
    return problems
