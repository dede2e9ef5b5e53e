"""Signing in with a token, and out."""

import re

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from grader_service.model.base import neutralise
from grader_service.store.events import record
from grader_service.web.access import LONGEST_NAME, Role, fresh_cookie
from grader_service.web.guard import COOKIE, cookie_of
from grader_service.web.rendering import page
from grader_service.web.site import client_address, fields_of, site_of

log = structlog.get_logger()
_LOCAL = re.compile(r"/(?![/\\])[\x21-\x7e]{0,1000}")


def form(request: Request) -> Response:
    """The form; its cookie ties what is sent to the browser that asked for it."""
    return _form(request, request.query_params.get("next", "/"))


def sign_in(request: Request) -> Response:
    """Opens a session for a token."""
    site, fields, address = site_of(request), fields_of(request), client_address(request)
    target = fields.one("next", "/")
    wait_s = site.patience.wait_s(address)
    if wait_s:
        answer = _form(request, target, f"Too many wrong tokens. Try again in {wait_s:.0f} s.", status=429)
        answer.headers["Retry-After"] = f"{wait_s:.0f}"
        return answer
    role = site.tokens.role_of(fields.one("token"))
    if role is Role.NOBODY:
        site.patience.failed(address)
        log.warning("sign_in_refused", address=address)
        return _form(request, target, "This token opens nothing here.", status=403)
    name = neutralise(fields.one("name"))
    if role is Role.OPERATOR and not (name.isprintable() and 0 < len(name) <= LONGEST_NAME):
        text = f"Operators sign in with a name of at most {LONGEST_NAME} characters; it stands in the audit log."
        return _form(request, target, text, status=400)
    if role is Role.OPERATOR:
        with site.acting.transaction() as connection:
            record(connection, "web_signed_in", f"web:{name}", address=address)
    cookie = site.sessions.open(role, name[:LONGEST_NAME] or "viewer")
    answer = RedirectResponse(local(target), 303)
    set_session(request, answer, cookie)
    return answer


def sign_out(request: Request) -> Response:
    """Ends the session."""
    site_of(request).sessions.close(cookie_of(request))
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=secure(request))
    return answer


def _form(request: Request, target: str, problem: str = "", status: int = 200) -> Response:
    site, cookie = site_of(request), cookie_of(request)
    fresh = cookie or fresh_cookie()
    answer = page(
        request,
        "login.html.j2",
        status=status,
        target=local(target),
        problem=problem,
        csrf=site.sessions.csrf(fresh),
        tokens=site.tokens,
        provider=site.provider,
        longest_name=LONGEST_NAME,
    )
    if not cookie:
        set_session(request, answer, fresh)
    return answer


def set_session(request: Request, answer: Response, cookie: str) -> None:
    """Gives the browser its session."""
    answer.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=secure(request), path="/")


def secure(request: Request) -> bool:
    """Whether cookies are for TLS only."""
    return request.url.scheme == "https"


def local(target: str) -> str:
    """Only an address of this server, so that nobody is sent elsewhere after signing in."""
    return target if _LOCAL.fullmatch(target) else "/"
