"""Stands before every page: names, size, session, role, forged requests, and the headers of each answer.

What is not allowed here reaches no page: reading needs a viewer, and every POST beside signing in and out an operator.
"""

import asyncio
import hmac
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grader_service.web.access import Role, Source, Visitor
from grader_service.web.failures import failure, unexpected
from grader_service.web.forms import FORM_TYPE, MOST_BYTES, parse
from grader_service.web.hosts import name_of
from grader_service.web.site import FIELDS, OPERATORS_ONLY, VISITOR, Site, client_address

COOKIE = "grader_session"
_BODY_S = 15.0
_OPEN_TO_ALL = ("/login", "/static/", "/alive", "/ready")
_SIGNING = frozenset({"/login", "/logout"})
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer` browsers would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class Guard:
    """ASGI middleware in front of all pages."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        scope[VISITOR] = Visitor(Role.NOBODY)
        request = Request(scope, receive)
        try:
            refusal = await self._refusal(request)
            if refusal is not None:
                await refusal(scope, receive, send_guarded)
            else:
                await self._app(scope, receive, send_guarded)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - whatever it was, the visitor gets a page and the log the reason
            answer = unexpected(request, error)
            if not started:
                await answer(scope, receive, send_guarded)

    async def _refusal(self, request: Request) -> Response | None:
        """Why this request goes no further; None when it may, with its visitor and form in the scope."""
        site, path = self._site, request.url.path
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or (site.names is not None and name_of(hosts[0]) not in site.names):
            return failure(
                request, 421, "This server is not known by that name. Start `grader web` with `--name` if it should be."
            )
        if site.open_reading and any(header in request.headers for header in _PROXY_HEADERS):
            return failure(
                request,
                403,
                "This request came through a proxy, and reading needs no token here. Set GRADER_WEB_VIEWER_TOKEN_FILE.",
            )
        cookie = cookie_of(request)
        visitor = request.scope[VISITOR] = self._visitor(request, cookie)
        if request.method == "POST":
            return await self._refused_post(request, visitor, cookie)
        if request.method not in {"GET", "HEAD"}:
            return failure(request, 405, "Pages are read, and forms are sent by POST.")
        if visitor.role < Role.VIEWER and not path.startswith(_OPEN_TO_ALL):
            return self._asked_to_sign_in(request)
        return None

    def _visitor(self, request: Request, cookie: str) -> Visitor:
        least = Role.VIEWER if self._site.open_reading else Role.NOBODY
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and request.url.path.startswith("/api/"):
            address = client_address(request)
            if self._site.patience.wait_s(address):
                return Visitor(least)
            role = self._site.tokens.role_of(token.strip())
            if role is Role.NOBODY:
                self._site.patience.failed(address)
            return Visitor(max(role, least), "api")
        if not cookie:
            return Visitor(least)
        role, name, source = self._site.sessions.find(cookie) or (Role.NOBODY, "", Source.TYPED)
        return Visitor(max(role, least), name, self._site.sessions.csrf(cookie), source)

    async def _refused_post(self, request: Request, visitor: Visitor, cookie: str) -> Response | None:
        if not _same_origin(request):
            return failure(
                request, 403, "This form was not sent by a page of this server. Open the page and try again."
            )
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
            return failure(request, 415, f"Forms come as {FORM_TYPE}.")
        try:
            fields = parse(await asyncio.wait_for(_body(request), _BODY_S))
        except ValueError:
            return failure(request, 413, f"A form here has at most {MOST_BYTES // 1024} KiB and a few hundred fields.")
        except TimeoutError:
            return failure(request, 400, "The form did not arrive.")
        signing = request.url.path in _SIGNING
        if not signing and not visitor.operates:
            if self._site.tokens.operator is None and self._site.provider is None:
                text = (
                    "No operator token is set, so that nothing can be changed here; see GRADER_WEB_OPERATOR_TOKEN_FILE."
                )
                return failure(request, 403, text)
            return failure(request, 403, OPERATORS_ONLY)
        expected = self._site.sessions.csrf(cookie)
        if not cookie or not hmac.compare_digest(expected.encode(), fields.one("csrf").encode()):
            return failure(request, 403, "This form is from another session. Open the page again and repeat it.")
        request.scope[FIELDS] = fields
        return None

    def _asked_to_sign_in(self, request: Request) -> Response:
        if request.url.path.startswith("/api/"):
            answer = failure(request, 401, "send `Authorization: Bearer TOKEN`")
            answer.headers["WWW-Authenticate"] = "Bearer"
            return answer
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?next={quote(target, safe='')}", 303)


def cookie_of(request: Request) -> str:
    """The session's cookie; empty when there is none."""
    return request.cookies.get(COOKIE, "")[:200]


def _same_origin(request: Request) -> bool:
    """Whether a page of ours sent this; browsers say so in headers that no page can set."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is None and origin is None:
        return False
    if site is not None and site != "same-origin":
        return False
    return origin is None or origin.partition("://")[2].lower() == request.headers["host"].lower()


async def _body(request: Request) -> bytes:
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > MOST_BYTES:
        raise ValueError("the body has more bytes than any form of ours, or does not say how many")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise ValueError("the body has more bytes than any form of ours")
    return bytes(body)
