"""What every request works with."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar, cast

from starlette.exceptions import HTTPException
from starlette.requests import Request

from checks.registry import Registry
from grader_service.store.engine import Store
from grader_service.web.access import Patience, Sessions, Tokens, Visitor
from grader_service.web.forms import Fields
from grader_service.web.oidc import Provider

T = TypeVar("T")
VISITOR = "grader.visitor"
FIELDS = "grader.fields"
OPERATORS_ONLY = "Only operators may do this. Sign in as an operator."


@dataclass
class _Turn:
    """Who makes an answer, and how many are at it or wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    takers: int = 0


class Remembered:
    """Costly answers for a while, the longer the more they cost.

    Each is made once at a time, so that impatient reloads do not pile up; who asks for another one does not wait.
    """

    def __init__(self, keep_s: float = 10.0, costs: float = 20.0, most: int = 16) -> None:
        self._keep_s, self._costs, self._most = keep_s, costs, most
        self._lock = threading.Lock()
        """Held for a moment, never while an answer is made."""
        self._kept: OrderedDict[Hashable, tuple[float, object]] = OrderedDict()
        """Each answer with the time until which it will do."""
        self._turns: dict[Hashable, _Turn] = {}
        """Of those answers that are being made, and of no others."""

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The answer under this key, made now unless a recent one is there."""
        found = self._recent(key)
        if found is not None:
            return cast("T", found[1])
        with self._turn(key):
            # Whoever had the turn before has made it.
            found = self._recent(key)
            if found is not None:
                return cast("T", found[1])
            began = time.monotonic()
            made = make()
            now = time.monotonic()
            with self._lock:
                self._kept[key] = (now + self._keep_s + self._costs * (now - began), made)
                self._kept.move_to_end(key)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            return made

    def _recent(self, key: Hashable) -> tuple[float, object] | None:
        with self._lock:
            found = self._kept.get(key)
        return found if found is not None and time.monotonic() < found[0] else None

    @contextmanager
    def _turn(self, key: Hashable) -> Iterator[None]:
        with self._lock:
            turn = self._turns.setdefault(key, _Turn())
            turn.takers += 1
        try:
            with turn.lock:
                yield
        finally:
            with self._lock:
                turn.takers -= 1
                if not turn.takers:
                    del self._turns[key]


@dataclass(frozen=True)
class Site:
    """The service behind the page."""

    store: Store
    """For pages, which only read."""
    acting: Store
    """The same, for what operators do."""
    registry: Registry
    tokens: Tokens
    names: frozenset[str] | None
    """Names under which the page may be asked for; None for any."""
    compares_at_once: int = 2000
    """Items of a batch that are compared before its page is sent; the diff of more comes after it."""
    provider: Provider | None = None
    """Vouches for people who sign in as themselves; without it there are tokens only."""
    sessions: Sessions = field(default_factory=Sessions)
    patience: Patience = field(default_factory=Patience)
    remembered: Remembered = field(default_factory=Remembered)

    @property
    def open_reading(self) -> bool:
        """Whether everyone who can connect may read."""
        return self.tokens.viewer is None and self.provider is None


def site_of(request: Request) -> Site:
    """The site that a request came to."""
    return cast("Site", request.app.state.site)


def visitor_of(request: Request) -> Visitor:
    """Who sent a request."""
    return cast("Visitor", request.scope[VISITOR])


def client_address(request: Request) -> str:
    """Where a request came from, as far as a trusted proxy says."""
    return request.client.host if request.client is not None else "unknown"


def require_operator(request: Request) -> None:
    """For pages that only lead to a form: forms of anybody else are refused before they come to a page.

    Raises:
        HTTPException: 403, the visitor may only read.
    """
    if not visitor_of(request).operates:
        raise HTTPException(403, OPERATORS_ONLY)


def fields_of(request: Request) -> Fields:
    """The form of a POST."""
    return cast("Fields", request.scope[FIELDS])
