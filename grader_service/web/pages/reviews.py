"""The review queue: the cases that wait for a person, one of them large, and the decision, as `grader reviews` does."""

from collections.abc import Mapping, Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from checks.registry import Registry
from grader_service.errors import ConfigurationError, UsageError
from grader_service.model.base import IDENTIFIER
from grader_service.store import reviews
from grader_service.store.reviews import Case, CaseView, NothingToReview
from grader_service.web.failures import BadForm
from grader_service.web.forms import Fields
from grader_service.web.lookup import id_of, query_of
from grader_service.web.rendering import link, page
from grader_service.web.seen import arranged
from grader_service.web.site import fields_of, site_of, visitor_of

READY: Mapping[str, Sequence[str]] = {
    "accepted": (
        "What you wrote is concrete, and it answers the question.",
        "What you wrote is right, in other words than the check knows.",
        "One part is weak, and the rest is enough.",
    ),
    "rejected": (
        "This is too general: name a concrete situation, and say why it is so.",
        "This does not answer the question that the lab asks.",
        "This repeats itself, or the text of the lab.",
        "What this says is not right.",
    ),
}
"""Decision to reasons that are often given; learners read them."""


def queue(request: Request) -> Response:
    """The case that waits longest; after a decision the one that comes next, and what was decided."""
    store, query = site_of(request).store, query_of(request)
    cases, done = reviews.open_cases(store), _decided(request, query)
    following = _after(cases, None if done is None else done.case)
    view = None if following is None else _view(request, following.submission_id, following.check_id)
    return _page(request, view, cases, done=done)


def show(request: Request) -> Response:
    """One case; also one that is decided."""
    view = _view(request, id_of(request, "submission_id"), id_of(request, "check_id"))
    return _page(request, view, reviews.open_cases(site_of(request).store))


def act(request: Request) -> Response:
    """Decides a case, and goes on to the next one."""
    site, fields = site_of(request), fields_of(request)
    submission_id, check_id = id_of(request, "submission_id"), id_of(request, "check_id")
    decision = fields.one("decision")
    if decision not in READY:
        raise BadForm(f"a case is {' or '.join(READY)}; {decision[:50]!r} came")
    status = 400
    try:
        reason = reviews.checked_reason(" ".join(filter(None, (fields.one("ready"), fields.one("reason")))))
        status = 409
        accepted, actor = decision == "accepted", visitor_of(request).actor
        subject = fields.one("subject") or None  # of the case that the page showed
        reviews.decide(
            site.acting, submission_id, check_id, accepted=accepted, reason=reason, actor=actor, subject=subject
        )
    except UsageError as error:
        view, cases = _view(request, submission_id, check_id), reviews.open_cases(site.store)
        return _page(request, view, cases, status=status, problem=str(error), typed=fields)
    return RedirectResponse(link("/reviews", decided=submission_id, check=check_id), 303)


def _page(
    request: Request,
    view: CaseView | None,
    cases: Sequence[Case],
    *,
    done: CaseView | None = None,
    status: int = 200,
    problem: str = "",
    typed: Fields | None = None,
) -> Response:
    site = site_of(request)
    title, codes, order = ("", {}, ()) if view is None else _of_check(site.registry, view.case.check_id)
    place = None if view is None else next((at for at, case in enumerate(cases) if _key(case) == _key(view.case)), None)
    before = cases[place - 1] if place else None
    count, _ = reviews.waiting(site.store)
    return page(
        request,
        "reviews.html.j2",
        status=status,
        waiting_cases=lambda: count,
        count=count,
        cases=cases,
        view=view,
        # One that is not among the oldest may wait all the same; the store knows it when it is decided.
        waits=view is not None and view.case.decision is None and (place is not None or count > len(cases)),
        before=before,
        after=_after(cases, view.case) if view is not None else None,
        check_title=title,
        arranged=None if view is None else arranged(view, codes, order),
        done=done,
        problem=problem,
        typed=typed or Fields(),
        ready=READY,
        most_reason=reviews.LONGEST_REASON,
    )


def _view(request: Request, submission_id: str, check_id: str) -> CaseView:
    try:
        return reviews.case_view(site_of(request).store, submission_id, check_id)
    except NothingToReview:
        raise HTTPException(404, f"Nothing of submission {submission_id} waits, or waited, at {check_id}.") from None


def _decided(request: Request, query: Fields) -> CaseView | None:
    """The case that the address says was decided, if it was."""
    submission_id, check_id = query.one("decided"), query.one("check")
    if not IDENTIFIER.fullmatch(submission_id) or not IDENTIFIER.fullmatch(check_id):
        return None
    try:
        view = reviews.case_view(site_of(request).store, submission_id, check_id)
    except NothingToReview:
        return None
    return view if view.case.decision is not None else None


def _key(case: Case) -> tuple[float, str, str]:
    """Of the order in which cases stand in the list."""
    return case.opened_at, case.submission_id, case.check_id


def _after(cases: Sequence[Case], case: Case | None) -> Case | None:
    """The case that comes after this one, around the end of the list; None where no other one waits."""
    others = cases if case is None else [one for one in cases if _key(one) != _key(case)]
    return next((one for one in others if case is None or _key(one) > _key(case)), others[0] if others else None)


def _of_check(registry: Registry, check_id: str) -> tuple[str, Mapping[str, str], Sequence[str]]:
    """Title, codes with their meanings, and fields of the observation; of a check that is not installed here its id."""
    try:
        check = registry.load(check_id).check
    except ConfigurationError:
        return check_id, {}, ()
    return check.title, getattr(check, "codes", {}), list(check.observation_model.model_fields)
