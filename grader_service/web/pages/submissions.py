"""Submissions: the list with search, one with all that happened to it, and one of its verdicts."""

from dataclasses import asdict

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from grader_service.model.verdict import Status
from grader_service.report.audience import Audience
from grader_service.web import queries
from grader_service.web.failures import BadForm
from grader_service.web.lookup import audience_of, id_of, query_of, whereabouts_of
from grader_service.web.pages.cancelling import unfinished
from grader_service.web.pages.overview import STATE_WORDS
from grader_service.web.queries import PAGE, UNGRADED, SubmissionFilter
from grader_service.web.rendering import link, page, path_part
from grader_service.web.site import site_of

_LONGEST = 200


def listing(request: Request) -> Response:
    """Those received last first; goes on after `after`."""
    store, query = site_of(request).store, query_of(request)
    chosen = SubmissionFilter(
        text=query.one("q")[:_LONGEST],
        cohort=query.one("cohort")[:_LONGEST],
        lab=query.one("lab")[:_LONGEST],
        status=query.one("status"),
    )
    if chosen.status not in {"", UNGRADED, *Status}:
        raise BadForm(f"there is no status {chosen.status[:50]!r}; known: {', '.join(Status)}, {UNGRADED}")
    found = queries.submissions(store, chosen, _place(query.one("after")))
    rows, more = found[:PAGE], len(found) > PAGE
    kept = {"q": chosen.text, **{name: value for name, value in asdict(chosen).items() if name != "text"}}
    return page(
        request,
        "submissions.html.j2",
        rows=rows,
        chosen=chosen,
        filtered=any(kept.values()),
        choices=queries.choices(store),
        statuses=[status.value for status in Status],
        ungraded=UNGRADED,
        states=STATE_WORDS,
        first=link("/submissions", **kept) if query.one("after") else "",
        following=link("/submissions", **kept, after=f"{rows[-1].received_at!r}~{rows[-1].submission_id}")
        if more
        else "",
    )


def show(request: Request) -> Response:
    """Where one submission is, what happened to it, and every verdict on it; by another of its ids, where that is."""
    store = site_of(request).store
    asked = id_of(request, "submission_id")
    found = whereabouts_of(store, request)
    submission_id = str(found.submission["submission_id"])
    if submission_id != asked:
        return RedirectResponse(f"/submissions/{path_part(submission_id)}", 303)
    verdicts = queries.verdicts_of(store, submission_id)
    current = next((line for line in verdicts if line.current), None)
    return page(
        request,
        "submission.html.j2",
        found=found,
        submission=found.submission,
        verdicts=verdicts,
        current=current,
        unfinished=unfinished(found),
        since=queries.in_force_since(store, current) if current is not None else None,
        run=queries.run_told(store, current.verdict_id) if current is not None else None,
        states=STATE_WORDS,
    )


def verdict(request: Request) -> Response:
    """One verdict with its report in a frame, as staff or as its learner sees it."""
    audience = audience_of(request)
    store = site_of(request).store
    verdict_id = id_of(request, "verdict_id")
    line = queries.verdict_line(store, verdict_id)
    if line is None:
        raise HTTPException(404, f"There is no verdict {verdict_id}.")
    learner = audience is Audience.LEARNER
    run = queries.run_told(store, verdict_id)
    return page(request, "verdict.html.j2", line=line, run=run, for_learner=learner)


def _place(text: str) -> tuple[float, str] | None:
    if not text:
        return None
    received, _, submission_id = text.partition("~")
    try:
        return float(received), submission_id
    except ValueError:
        raise BadForm("`after` is a place in the list: a time, `~` and an id") from None
