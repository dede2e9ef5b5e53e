"""Users of platforms in both Redis servers: each posts submissions, reads its own answers, and nothing else.

Which commands a platform needs, and how it posts, stands in deploy/kubernetes/redis-start.sh: it makes a user as whom
nobody is let in, and whose rules are copied here.
"""

import re
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError
from redis.exceptions import RedisError, ResponseError

from grader_service.errors import ConfigurationError, InfrastructureError, UsageError
from grader_service.service.message import Name

if TYPE_CHECKING:
    from redis import Redis

UNNAMED = "default"
"""The platform without a name: Redis takes a client that gives a password and no name for this user."""
_EXAMPLE = "platform"
_PREFIX = "platform-"
_MADE = "grader:platforms"
"""A hash in the broker: when each platform was added, seconds since 1970."""
_RULE = re.compile(r"\([^)]*\)|\S+")
"""One of the rules of a user; some stand in parentheses, with keys and commands of their own."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_ENDS = "-._:"
"""What follows a name of a platform in names that it owns."""
_PRIORITIES = tuple(f"\x06\x16{step}" for step in (3, 6, 9))
"""Ends of the lists in which Celery keeps a queue's messages with a priority."""
_TAKEN = ("_kombu", "celery", UNNAMED, "grader", "live", "regrade", "unacked")
"""Names of the service's and Celery's own."""


@dataclass(frozen=True)
class Platform:
    """A platform that may post."""

    name: str
    owned: tuple[str, ...]
    """Names of queues and beginnings of task ids that are its own; none for the platform without a name."""
    on: bool
    connections: int
    """To both servers, now."""
    made_at: float | None
    """Seconds since 1970; None where the server does not know."""


class PlatformUsers:
    """What `grader platforms` does.

    Args:
        broker: a client of it, as its user `admin`.
        results: the same of the Redis of the answers.
    """

    def __init__(self, broker: "Redis", results: "Redis") -> None:
        self._broker: Any = broker
        self._servers: tuple[Any, Any] = (broker, results)

    def add(self, name: str, queues: Collection[str] = ()) -> str | None:
        """Lets a platform in, with a password that is kept nowhere and returned here; None for the one without a name.

        Args:
            queues: further names that it owns, such as that of its queue for answers.

        Raises:
            UsageError: a name cannot be given, or belongs to another platform.
            ConfigurationError: the servers do not have the service's users.
            InfrastructureError: a server does not answer, or refuses.
        """
        if name == UNNAMED:
            self._change(UNNAMED, ["on"], ["on"])
            return None
        owned = tuple(dict.fromkeys([name, *queues]))
        self._require_free(name, owned)
        posts, reads = self._examples()
        password = secrets.token_urlsafe(24)
        login = ["reset", "on", f"#{sha256(password.encode()).hexdigest()}", "resetchannels"]
        self._change(user_of(name), [*login, *posts], [*login, *_answers_of(owned), *reads])
        self._call(self._broker, "HSET", _MADE, name, int(time.time()))
        return password

    def remove(self, name: str) -> None:
        """Lets a platform in no more, and ends its connections.

        Raises:
            UsageError: there is none of this name.
            InfrastructureError: a server does not answer, or refuses.
        """
        if name not in {platform.name for platform in self.platforms()}:
            raise UsageError(f"there is no platform {name}; `grader platforms list` shows those that there are")
        if name == UNNAMED:
            self._change(UNNAMED, ["off"], ["off"])
            for server in self._servers:
                self._call(server, "CLIENT", "KILL", "USER", UNNAMED)
            return
        for server in self._servers:
            self._call(server, "ACL", "DELUSER", user_of(name))  # with its connections
            self._save(server)
        self._call(self._broker, "HDEL", _MADE, name)

    def platforms(self) -> list[Platform]:
        """All platforms, by name, the one without a name first.

        Raises:
            InfrastructureError: a server does not answer, or refuses.
        """
        made = self._call(self._broker, "HGETALL", _MADE)
        users: dict[str, list[str]] = {}
        for server in self._servers:  # one that is in one of them alone, since its addition broke off, is shown too
            users |= self._users(server)
        there = [client["user"] for server in self._servers for client in self._call(server, "CLIENT LIST")]
        return [
            Platform(
                name,
                _owned(rules),
                on="on" in rules,
                connections=there.count(user),
                made_at=float(made[name.encode()]) if name.encode() in made else None,
            )
            for user, rules in sorted(users.items())
            for name in [user.removeprefix(_PREFIX)]
            if user == UNNAMED or user.startswith(_PREFIX)
        ]

    def _require_free(self, name: str, owned: Sequence[str]) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(f"a platform cannot be called {name!r}; expected at most 32 of a-z, 0-9 and, inside, -")
        for one in owned:
            try:
                TypeAdapter(Name).validate_python(one)
            except ValidationError:
                raise UsageError(f"no queue is called {one!r}; expected 1 to 128 of A-Za-z0-9._:-") from None
        others = {platform.name: platform.owned for platform in self.platforms()}
        if name in others:
            raise UsageError(f"there is a platform {name} already; `grader platforms remove {name}` ends it")
        for other, theirs in (("the service", _TAKEN), *others.items()):
            for one in owned:
                if met := [it for it in theirs if _meet(one, it)]:
                    raise UsageError(f"{one} cannot be {name}'s: {met[0]} belongs to {other}; choose another name")

    def _examples(self) -> tuple[list[str], list[str]]:
        """What every platform may do at the broker, and where answers lie."""
        found = [self._users(server).get(_EXAMPLE) for server in self._servers]
        if None in found:
            raise ConfigurationError(
                f"a Redis has no user `{_EXAMPLE}`, so it does not have the users of this service; start both with "
                "deploy/kubernetes/redis-start.sh, as compose and the manifests do"
            )
        posts, reads = ([rule for rule in rules or () if rule[0] in "~%+-("] for rules in found)
        return posts, reads

    def _users(self, server: Any) -> dict[str, list[str]]:
        lines = (line.decode() for line in self._call(server, "ACL", "LIST"))
        return {name: rules for _, name, *rules in (_RULE.findall(line) for line in lines)}

    def _change(self, user: str, *rules: Sequence[str]) -> None:
        """First at the Redis of answers, so that a platform that may post may read its answers, too."""
        for server in self._servers:
            self._save(server)  # or nothing is done: a server that keeps its users in no file would forget this one
        for server, its in reversed(list(zip(self._servers, rules, strict=True))):
            self._call(server, "ACL", "SETUSER", user, *its)
            self._save(server)

    def _save(self, server: Any) -> None:
        self._call(server, "ACL", "SAVE")

    def _call(self, server: Any, *words: str | int) -> Any:
        try:
            return server.execute_command(*words)
        except ResponseError as error:
            raise InfrastructureError(f"Redis did not do {' '.join(map(str, words[:2]))}: {error}") from error
        except RedisError as error:
            raise InfrastructureError(f"Redis cannot be administered: {error}") from error


def user_of(name: str) -> str:
    """The user of the platform with this name."""
    return f"{_PREFIX}{name}"


def _answers_of(owned: Sequence[str]) -> list[str]:
    """Keys where answers lie, of queues with what Celery needs for each and of results of tasks; and channels."""
    keys = []
    for name in owned:
        begun = f"{name}[{_ENDS}]*"
        keys += [f"~{name}", f"~{begun}", *(f"~{name}{priority}" for priority in _PRIORITIES)]
        for table in ("_kombu.binding", "_kombu.binding_permanent"):
            keys += [f"~{table}.{name}", f"~{table}.{begun}"]
        keys += [f"{kind}celery-task-meta-{begun}" for kind in "~&"]  # Celery says on a channel that there is one
    return keys


def _owned(rules: Sequence[str]) -> tuple[str, ...]:
    """The names that were given to a platform with these keys."""
    first, last = "~_kombu.binding.", f"[{_ENDS}]*"
    return tuple(rule[len(first) : -len(last)] for rule in rules if rule.startswith(first) and rule.endswith(last))


def _meet(one: str, other: str) -> bool:
    """Whether a name can be owned by both."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and long[len(short) : len(short) + 1] in ("", *_ENDS)
