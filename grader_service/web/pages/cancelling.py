"""Cancels what is unfinished of a submission, as `grader cancel` does, after a page that says what would happen."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from grader_service.store import cancelling
from grader_service.store.ids import Named
from grader_service.store.operations import Whereabouts
from grader_service.store.regrade_apply import MOST_REASON
from grader_service.web.failures import BadForm
from grader_service.web.lookup import whereabouts_of
from grader_service.web.pages.inputs import reason_of
from grader_service.web.pages.overview import STATE_WORDS
from grader_service.web.rendering import page, path_part
from grader_service.web.site import fields_of, require_operator, site_of, visitor_of


def unfinished(found: Whereabouts) -> Sequence[Mapping[str, Any]]:
    """Runs that can be cancelled."""
    return [run for run in found.runs if run["state"] in cancelling.UNFINISHED and run["cancelled"] is None]


def confirm(request: Request) -> Response:
    """Says which runs would end, and asks."""
    found = whereabouts_of(site_of(request).store, request)
    require_operator(request)
    runs = unfinished(found)
    if not runs:
        return _back(found)
    return page(
        request,
        "cancel.html.j2",
        submission=found.submission,
        runs=runs,
        answers=any(run["item_id"] is None for run in runs),
        states=STATE_WORDS,
        most_reason=MOST_REASON,
    )


def act(request: Request) -> Response:
    """Does it, once."""
    found, fields = whereabouts_of(site_of(request).store, request), fields_of(request)
    if fields.one("confirmed") != "yes":
        raise BadForm("cancelling asks first: open the submission and choose it there")
    named = Named(str(found.submission["submission_id"]))
    if not cancelling.cancel(site_of(request).acting, named, reason_of(fields), visitor_of(request).actor):
        raise BadForm("nothing was left to cancel: it was done, or cancelled, before you confirmed")
    return _back(found)


def _back(found: Whereabouts) -> Response:
    return RedirectResponse(f"/submissions/{path_part(str(found.submission['submission_id']))}", 303)
