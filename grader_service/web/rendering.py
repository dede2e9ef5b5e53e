"""Makes pages of templates; every text is escaped, and characters that reorder a line are replaced."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from urllib.parse import quote, urlencode

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse

from grader_service.errors import StoreUnavailable
from grader_service.model.base import neutralise
from grader_service.report import formats
from grader_service.report.templating import environment_of
from grader_service.store import reviews
from grader_service.web.access import Role, Source, Visitor
from grader_service.web.site import site_of, visitor_of

STATIC = {
    "report.css": ("grader_service.report", "templates/report.css", "text/css; charset=utf-8"),
    "web.css": ("grader_service.web", "static/web.css", "text/css; charset=utf-8"),
    "live.js": ("grader_service.web", "static/live.js", "text/javascript; charset=utf-8"),
    "reviews.js": ("grader_service.web", "static/reviews.js", "text/javascript; charset=utf-8"),
}
"""Name to package, path and type of what the pages load."""
_DETAIL_SHOWN = 400
_FAILED = 400


@cache
def static_bytes(name: str) -> bytes:
    """The content of a file in `STATIC`."""
    package, path, _ = STATIC[name]
    return (files(package) / path).read_bytes()


@cache
def static_digest(name: str) -> str:
    """Changes when the file does, so that browsers may keep it for ever."""
    return hashlib.sha256(static_bytes(name)).hexdigest()[:16]


def page(request: Request, template: str, *, status: int = 200, **values: object) -> HTMLResponse:
    """A whole page, or the part of one that the page fetches to stay current."""
    visitor = visitor_of(request)
    usual = {
        "visitor": visitor,
        "may_sign_in": _may_sign_in(request, visitor),
        "path": request.url.path,
        "waiting_cases": partial(_waiting_cases, request, status),
    }
    return HTMLResponse(environment().get_template(template).render(usual | values), status)


def _waiting_cases(request: Request, status: int) -> int | None:
    """How many cases wait for a person, as of a moment ago; None on pages that must not depend on the database."""
    site = site_of(request)
    if status >= _FAILED:
        return None
    try:
        return site.remembered.get("waiting cases", lambda: reviews.waiting(site.store)[0])
    except StoreUnavailable:
        return None


def _may_sign_in(request: Request, visitor: Visitor) -> bool:
    """Whether signing in could make more of this visitor."""
    site = site_of(request)
    if visitor.role < Role.VIEWER:
        return True
    through_provider = site.provider is not None and visitor.source is not Source.PROVIDER
    return not visitor.operates and (site.tokens.operator is not None or through_provider)


@cache
def environment() -> Environment:
    """The templates with their filters."""
    made = environment_of("grader_service.web")
    made.globals |= {"static": lambda name: f"/static/{static_digest(name)}/{name}", "link": link}
    made.filters |= {
        "ago": ago,
        "count": count,
        "detail": detail,
        "duration": duration,
        "instant": instant,
        "iso": iso,
        "pathquote": path_part,
    }
    return made


def link(path: str, **query: object) -> str:
    """An address with those parameters that are not empty."""
    kept = [
        (name, item)
        for name, value in query.items()
        for item in (value if isinstance(value, list | tuple) else [value])
        if item not in {None, "", False}
    ]
    return f"{path}?{urlencode(kept)}" if kept else path


def path_part(value: object) -> str:
    """A text as one part of an address's path."""
    return quote(str(value), safe=":")


def instant(seconds: float | None) -> str:
    """A time in UTC, to the second; a dash where there is none or it is out of any calendar."""
    moment = formats.utc_of(seconds)
    return formats.ABSENT if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


def iso(seconds: float | None) -> str:
    """The same for machines."""
    moment = formats.utc_of(seconds)
    return "" if moment is None else moment.isoformat(timespec="seconds")


def duration(seconds: float | None) -> str:
    """How long, in the two largest units that say something."""
    if seconds is None:
        return formats.ABSENT
    if seconds < 1:
        return "0 s" if seconds <= 0 else "under 1 s"
    left = round(seconds)
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts)


def ago(seconds: float | None) -> str:
    """How long ago, given how many seconds."""
    return formats.ABSENT if seconds is None else f"{duration(seconds)} ago"


def count(value: float | None) -> str:
    """A whole number with separators."""
    return formats.ABSENT if value is None else f"{value:,.0f}"


def detail(value: Mapping[str, object]) -> str:
    """What an event says beside its kind, in one line."""
    parts = [f"{name}={_short(item)}" for name, item in value.items() if item not in (None, "", {}, [])]
    text = neutralise(" · ".join(parts))
    return text if len(text) <= _DETAIL_SHOWN else f"{text[: _DETAIL_SHOWN - 1]}…"


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
