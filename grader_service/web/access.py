"""Who may see and do what: roles, two tokens, sessions in memory, and limited patience with those who guess."""

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from pathlib import Path

from grader_service.errors import ConfigurationError

SHORTEST_TOKEN = 16
LONGEST_NAME = 60
"""Characters of the name that an operator signs in with."""
_IDLE_S = 3600.0
_SESSION_S = 10 * 3600.0
_MOST_SESSIONS = 1000
_MOST_ADDRESSES = 10_000
_MOST_FAILED = 5
_FAILED_S = 60.0


class Role(IntEnum):
    """What a visitor may do; each role may do what those before it may."""

    NOBODY = 0
    VIEWER = 1
    OPERATOR = 2


class Source(StrEnum):
    """Whose word a visitor's name is; it begins the actor in the audit trail, so that neither passes for the other."""

    TYPED = "web"
    """The visitor's own, typed beside a token."""
    PROVIDER = "oidc"
    """The OpenID provider's."""


@dataclass(frozen=True)
class Visitor:
    """Who sent a request."""

    role: Role
    name: str = ""
    """As given when signing in; empty for those who did not."""
    csrf: str = ""
    """What a form of this visitor has to carry; empty without a cookie."""
    source: Source = Source.TYPED

    @property
    def operates(self) -> bool:
        """Whether actions are there for this visitor."""
        return self.role >= Role.OPERATOR

    @property
    def actor(self) -> str:
        """The name in the audit trail."""
        return f"{self.source}:{self.name}"


@dataclass(frozen=True)
class Tokens:
    """The secrets that open the page; a missing one opens nothing."""

    viewer: str | None = None
    operator: str | None = None

    def role_of(self, token: str) -> Role:
        """What this token opens; both comparisons take the same time whatever it is."""
        offered = _digest(token)
        operator = hmac.compare_digest(offered, _digest(self.operator or secrets.token_hex()))
        viewer = hmac.compare_digest(offered, _digest(self.viewer or secrets.token_hex()))
        if operator:
            return Role.OPERATOR
        return Role.VIEWER if viewer else Role.NOBODY


def read_tokens(viewer_file: Path | None, operator_file: Path | None) -> Tokens:
    """The tokens in these files' first lines.

    Raises:
        ConfigurationError: a file cannot be read, a token is short, or both are the same.
    """
    viewer = _read(viewer_file, "GRADER_WEB_VIEWER_TOKEN_FILE")
    operator = _read(operator_file, "GRADER_WEB_OPERATOR_TOKEN_FILE")
    if viewer is not None and viewer == operator:
        raise ConfigurationError(
            "GRADER_WEB_VIEWER_TOKEN_FILE and GRADER_WEB_OPERATOR_TOKEN_FILE hold the same token, so that every viewer "
            "could act; make two"
        )
    return Tokens(viewer, operator)


@dataclass
class _Session:
    role: Role
    name: str
    source: Source
    opened_at: float
    seen_at: float


class Sessions:
    """Who is signed in, until the process ends, an hour without a request, or ten hours."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._open: OrderedDict[bytes, _Session] = OrderedDict()

    def open(self, role: Role, name: str, source: Source = Source.TYPED) -> str:
        """A new session; returns what the cookie holds, of which only a digest is kept."""
        cookie = fresh_cookie()
        now = self._clock()
        with self._lock:
            self._open[_digest(cookie)] = _Session(role, name, source, now, now)
            while len(self._open) > _MOST_SESSIONS:
                self._open.popitem(last=False)
        return cookie

    def find(self, cookie: str) -> tuple[Role, str, Source] | None:
        """Role and name of an open session, and whose word the name is."""
        now = self._clock()
        digest = _digest(cookie)
        with self._lock:
            session = self._open.get(digest)
            if session is None:
                return None
            if now - session.seen_at > _IDLE_S or now - session.opened_at > _SESSION_S:
                del self._open[digest]
                return None
            session.seen_at = now
            return session.role, session.name, session.source

    def close(self, cookie: str) -> None:
        """Signs out."""
        with self._lock:
            self._open.pop(_digest(cookie), None)

    def csrf(self, cookie: str) -> str:
        """What a form must carry that is sent with this cookie; nobody can make it without the process's key."""
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()


class Patience:
    """Counts failed sign-ins by address: after 5 within a minute, it has to wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_s(self, address: str) -> float:
        """Seconds until this address may try again; 0 when it may now."""
        now = self._clock()
        with self._lock:
            times = self._failed.get(address)
            if times is None or len(times) < _MOST_FAILED:
                return 0.0
            return max(0.0, times[0] + _FAILED_S - now)

    def failed(self, address: str) -> None:
        """A token was wrong."""
        with self._lock:
            self._failed.setdefault(address, deque(maxlen=_MOST_FAILED)).append(self._clock())
            self._failed.move_to_end(address)
            while len(self._failed) > _MOST_ADDRESSES:
                self._failed.popitem(last=False)


def fresh_cookie() -> str:
    """A value that nobody guesses."""
    return secrets.token_urlsafe(32)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _read(path: Path | None, name: str) -> str | None:
    if path is None:
        return None
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{name}: the token file {path} cannot be read: {error}") from error
    token = lines[0].strip() if lines else ""
    if len(token) < SHORTEST_TOKEN:
        raise ConfigurationError(
            f"{name}: the first line of {path} must be a token of at least {SHORTEST_TOKEN} characters, it has "
            f"{len(token)}; `openssl rand -base64 24 > {path}` makes one"
        )
    return token
