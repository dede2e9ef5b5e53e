"""Pages for what went wrong: what it was and what to do, never a traceback."""

from collections.abc import Callable

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from grader_service.errors import StoreUnavailable, UsageError
from grader_service.store.ids import AmbiguousId
from grader_service.web.rendering import page

log = structlog.get_logger()

_TITLES = {
    400: "This was not understood",
    401: "A token is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    409: "Not now",
    413: "Too large",
    415: "Not a form",
    421: "Wrong address",
    429: "Too many attempts",
    500: "The grader failed",
    503: "The database does not answer",
}


_KNOWN = {404: "There is no such page.", 405: "This address does not take such a request."}
_PHRASES = frozenset({"", "Not Found", "Method Not Allowed"})


class BadForm(UsageError):
    """A form or an address holds what it must not; says what was expected."""


def failure(request: Request, status: int, text: str) -> Response:
    """The answer for a failure: JSON where JSON was asked for, else a page."""
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": text}, status)
    title = _TITLES.get(status, "This did not work")
    return page(request, "failure.html.j2", status=status, title=title, text=text)


def unexpected(request: Request, error: Exception) -> Response:
    """Something of ours broke: logged here, and said without a word of where."""
    log.error("page_failed", path=request.url.path, method=request.method, exc_info=error)
    return failure(request, 500, "Something of ours broke. It is in the log of `grader web`; nothing was half done.")


def _http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    text = error.detail if error.detail not in _PHRASES else _KNOWN.get(error.status_code, "This did not work.")
    return failure(request, error.status_code, text)


def _usage(request: Request, error: Exception) -> Response:
    return failure(request, 400 if isinstance(error, BadForm) else 409, str(error))


def _several(request: Request, error: Exception) -> Response:
    """For people; the answer names no address to go on to, so that a browser shows it."""
    return page(request, "several.html.j2", status=300, error=error)


def _store(request: Request, error: Exception) -> Response:
    log.warning("store_unavailable", path=request.url.path, error=str(error))
    return failure(request, 503, "Grading goes on or waits by itself; this page works again when the database does.")


HANDLERS: dict[int | type[Exception], Callable[[Request, Exception], Response]] = {
    HTTPException: _http,
    AmbiguousId: _several,
    UsageError: _usage,
    StoreUnavailable: _store,
}
