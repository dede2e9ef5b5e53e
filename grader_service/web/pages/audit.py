"""The audit log: who did what, newest first."""

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response

from grader_service.store.engine import Store
from grader_service.store.ids import UnknownId, submission_named
from grader_service.web import queries
from grader_service.web.failures import BadForm
from grader_service.web.lookup import query_of
from grader_service.web.queries import PAGE, EventFilter
from grader_service.web.rendering import link, page
from grader_service.web.site import site_of

_MOST_DIGITS = 18


def show(request: Request) -> Response:
    """Events, by kind, actor, submission and batch; goes on before `before`."""
    query, store = query_of(request), site_of(request).store
    chosen = EventFilter(
        kind=query.one("kind")[:40],
        actor=query.one("actor")[:200],
        submission=_submission(store, query.one("submission")[:128]),
        batch=query.one("batch")[:32],
    )
    before = query.one("before")
    if before and not (before.isascii() and before.isdigit() and len(before) <= _MOST_DIGITS):
        raise BadForm("`before` is the number of an event")
    found = queries.events(store, chosen, int(before) if before else None)
    rows = found[:PAGE]
    kept = asdict(chosen)
    return page(
        request,
        "audit.html.j2",
        rows=rows,
        chosen=chosen,
        filtered=any(kept.values()),
        first=link("/audit", **kept) if before else "",
        following=link("/audit", **kept, before=rows[-1].id) if len(found) > PAGE else "",
    )


def _submission(store: Store, text: str) -> str:
    """The id of the submission that a text names; the text itself where events have it, or nothing is called so."""
    if not text or queries.has_events(store, text):
        return text
    try:
        return submission_named(store, text)
    except UnknownId:
        return text
