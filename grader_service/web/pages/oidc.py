"""Signing in through the OpenID provider: the way there, and back."""

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from grader_service.store.events import record
from grader_service.web.access import Source, Visitor
from grader_service.web.claims import SignInFailed
from grader_service.web.oidc import PENDING_S, Provider
from grader_service.web.pages.signing import local, secure, set_session
from grader_service.web.rendering import page
from grader_service.web.site import client_address, site_of

log = structlog.get_logger()
CALLBACK = "/login/oidc/callback"
_COOKIE = "grader_oidc"
_PATH = "/login/oidc"


def begin(request: Request) -> Response:
    """Sends the visitor to the provider."""
    target = local(request.query_params.get("next", "/"))
    try:
        there, sealed = _provider(request).begin(str(request.url.replace(path=CALLBACK, query="", fragment="")), target)
    except SignInFailed as failed:
        return _failed(request, failed)
    answer = RedirectResponse(there, 303)
    # Not `strict`: browsers would not send it with what leads back from the provider.
    answer.set_cookie(
        _COOKIE, sealed, max_age=PENDING_S, httponly=True, samesite="lax", secure=secure(request), path=_PATH
    )
    return answer


def callback(request: Request) -> Response:
    """Opens a session for whom the provider vouches."""
    site, provider = site_of(request), _provider(request)
    try:
        pending = provider.resume(request.cookies.get(_COOKIE, ""), request.query_params)
    except SignInFailed as failed:
        # The cookie stays: links of other sites and older tabs lead here, too.
        return _failed(request, failed)
    try:
        person = provider.person(pending, request.query_params)
    except SignInFailed as failed:
        return _forget(request, _failed(request, failed))
    visitor = Visitor(person.role, person.name, source=Source.PROVIDER)
    if visitor.operates:
        with site.acting.transaction() as connection:
            known = {"issuer": provider.issuer, "subject": person.subject}
            record(connection, "web_signed_in", visitor.actor, address=client_address(request), **known)
    # A page, not a redirect: on a way that began at another site browsers would not send the session's cookie.
    answer = page(request, "signed_in.html.j2", name=person.name, operates=visitor.operates, target=pending.target)
    set_session(request, answer, site.sessions.open(person.role, person.name, Source.PROVIDER))
    return _forget(request, answer)


def _provider(request: Request) -> Provider:
    provider = site_of(request).provider
    if provider is None:
        raise HTTPException(404, "People do not sign in through a provider here; see GRADER_WEB_OIDC_ISSUER.")
    return provider


def _failed(request: Request, failed: SignInFailed) -> Response:
    log.warning("sign_in_refused", address=client_address(request), reason=failed.reason)
    return page(request, "sign_in_failed.html.j2", status=failed.status, failed=failed)


def _forget(request: Request, answer: Response) -> Response:
    answer.delete_cookie(_COOKIE, path=_PATH, httponly=True, samesite="lax", secure=secure(request))
    return answer
