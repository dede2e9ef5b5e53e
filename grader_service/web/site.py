"""What every request works with."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from starlette.requests import Request

from checks.registry import Registry
from grader_service.store.engine import Store
from grader_service.web.access import Patience, Sessions, Tokens, Visitor
from grader_service.web.forms import Fields

T = TypeVar("T")
VISITOR = "grader.visitor"
FIELDS = "grader.fields"


class Remembered:
    """Costly answers for a while, the longer the more they cost.

    One is made at a time, so that impatient reloads do not pile up.
    """

    def __init__(self, keep_s: float = 10.0, costs: float = 20.0, most: int = 16) -> None:
        self._keep_s, self._costs, self._most = keep_s, costs, most
        self._making = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[float, object]] = OrderedDict()
        """Each answer with the time until which it will do."""

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The answer under this key, made now unless a recent one is there."""
        with self._making:
            began = time.monotonic()
            found = self._kept.get(key)
            if found is not None and began < found[0]:
                return cast("T", found[1])
            made = make()
            ended = time.monotonic()
            self._kept[key] = (ended + self._keep_s + self._costs * (ended - began), made)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return made


@dataclass(frozen=True)
class Site:
    """The service behind the page."""

    store: Store
    registry: Registry
    tokens: Tokens
    names: frozenset[str] | None
    """Names under which the page may be asked for; None for any."""
    compares_at_once: int = 2000
    """Items of a batch that are compared before its page is sent; the diff of more comes after it."""
    sessions: Sessions = field(default_factory=Sessions)
    patience: Patience = field(default_factory=Patience)
    remembered: Remembered = field(default_factory=Remembered)

    @property
    def open_reading(self) -> bool:
        """Whether everyone who can connect may read."""
        return self.tokens.viewer is None


def site_of(request: Request) -> Site:
    """The site that a request came to."""
    return cast("Site", request.app.state.site)


def visitor_of(request: Request) -> Visitor:
    """Who sent a request."""
    return cast("Visitor", request.scope[VISITOR])


def fields_of(request: Request) -> Fields:
    """The form of a POST."""
    return cast("Fields", request.scope[FIELDS])
