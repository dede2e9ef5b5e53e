"""Documents under policies of their own: reports, which must not act for the visitor, and the pages' own files."""

import time
from functools import partial

import structlog
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from grader_service.errors import ConfigurationError, StoreUnavailable
from grader_service.exports.cohorts.texts import with_texts
from grader_service.model.regrade import Selection
from grader_service.model.verdict import Verdict
from grader_service.report.audience import Audience
from grader_service.report.changes import Attempt
from grader_service.report.cohort.pages import batch_page, cohort_page
from grader_service.report.html import render_report
from grader_service.store import attempts, cohorts, regrades
from grader_service.store.engine import Store
from grader_service.store.results import verdict_document
from grader_service.web.failures import BadForm
from grader_service.web.lookup import audience_of, batch_of, diff_now, id_of, query_of
from grader_service.web.rendering import STATIC, static_bytes, static_digest
from grader_service.web.site import site_of

log = structlog.get_logger()
_VERDICT_POLICY = {
    # Of our origin, so that the page around it can measure it; without scripts nothing in it can use that.
    "Content-Security-Policy": (
        "sandbox allow-same-origin; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Frame-Options": "SAMEORIGIN",
}
_REPORT_POLICY = {
    # Its own policy names its script by digest; this one takes it out of our origin, away from session and forms.
    "Content-Security-Policy": (
        "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


def verdict_report(request: Request) -> Response:
    """The report of one verdict, as `grader grade --report` writes it: for staff, or for its learner."""
    audience = audience_of(request)
    document = _document(request)
    try:
        verdict = Verdict.model_validate_json(document)
    except ValidationError as error:
        log.warning("verdict_unreadable", verdict_id=request.path_params["verdict_id"], error=str(error)[:500])
        raise HTTPException(409, "This verdict was written by another version and cannot be shown here.") from None
    attempt = _attempt(site_of(request).store, verdict) if audience is Audience.LEARNER else None
    return HTMLResponse(render_report(verdict, audience, attempt), headers=_VERDICT_POLICY)


def _attempt(store: Store, verdict: Verdict) -> Attempt:
    before = attempts.verdict_before(store, verdict.submission_id)
    try:
        earlier = None if before is None else Verdict.model_validate_json(before)
    except ValidationError:
        earlier = None  # written by another version: what changed since cannot be told
    measured = verdict.measurement
    return Attempt(measured.attempt if measured is not None else None, earlier)


def verdict_json(request: Request) -> Response:
    """The signed document, byte for byte."""
    return Response(_document(request), media_type="application/json")


def cohort_report(request: Request) -> Response:
    """The report of a cohort, and of one lab of it where one is named."""
    query = query_of(request)
    cohort, lab = query.one("cohort"), query.one("lab")
    if not cohort:
        raise BadForm("name the cohort: /cohorts/report?cohort=NAME")
    try:
        selection = Selection(cohorts=(cohort,), labs=(lab,) if lab else ())
    except ValidationError:
        raise BadForm(f"there cannot be a cohort {cohort[:100]!r} with a lab {lab[:100]!r}") from None
    title = f"{cohort} · {lab}" if lab else cohort
    site = site_of(request)
    text = site.remembered.get(("cohort", cohort, lab), lambda: _cohort_page(site.store, selection, title))
    return HTMLResponse(text, headers=_REPORT_POLICY)


def _cohort_page(store: Store, selection: Selection, title: str) -> str:
    entries, texts = with_texts(cohorts.entries(store, selection), partial(cohorts.documents, store))
    return cohort_page(entries, title=title, generated_at=time.time(), feedback=texts)


def batch_report(request: Request) -> Response:
    """The report of what a batch changes."""
    site = site_of(request)
    batch, progress = batch_of(site.store, request)
    key = ("report", batch.batch_id, batch.state, tuple(sorted(progress.counts.items())))
    diff = diff_now(site, batch, progress)
    text = site.remembered.get(key, lambda: batch_page(diff, regrades.changes(site.store, batch.batch_id)))
    return HTMLResponse(text, headers=_REPORT_POLICY)


def static(request: Request) -> Response:
    """A file that the pages load; its address changes with its content."""
    name = request.path_params["name"]
    if name not in STATIC or request.path_params["digest"] != static_digest(name):
        raise HTTPException(404)
    return Response(
        static_bytes(name),
        media_type=STATIC[name][2],
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


async def alive(_: Request) -> Response:
    """For health checks: the server answers, also while every thread makes something costly."""
    return PlainTextResponse("alive\n")


def ready(request: Request) -> Response:
    """For health checks: the database answers, with a schema that fits; else 503, and why for anybody to read."""
    try:
        site_of(request).store.check_schema()
    except StoreUnavailable as error:
        log.warning("store_unavailable", path=request.url.path, error=str(error))
        return PlainTextResponse("the database does not answer; the log of `grader web` says why\n", 503)
    except ConfigurationError as error:
        return PlainTextResponse(f"{error}\n", 503)
    return PlainTextResponse("ready\n")


def _document(request: Request) -> str:
    verdict_id = id_of(request, "verdict_id")
    found = verdict_document(site_of(request).store, verdict_id)
    if found is None:
        raise HTTPException(404, f"There is no verdict {verdict_id}.")
    return found
