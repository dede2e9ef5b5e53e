"""What several pages look up for a request."""

from starlette.exceptions import HTTPException
from starlette.requests import Request

from grader_service.errors import UsageError
from grader_service.model.base import IDENTIFIER
from grader_service.model.diff import Diff
from grader_service.model.regrade import Batch, Progress
from grader_service.regrade.diff import diff_of
from grader_service.report.audience import Audience
from grader_service.store import operations, regrades
from grader_service.store.engine import Store
from grader_service.store.ids import UnknownId
from grader_service.store.operations import Whereabouts
from grader_service.web.failures import BadForm
from grader_service.web.forms import Fields, parse
from grader_service.web.site import Site


def query_of(request: Request) -> Fields:
    """The parameters of the address.

    Raises:
        BadForm: there are too many.
    """
    try:
        return parse(request.url.query.encode())
    except ValueError as error:
        raise BadForm(f"this address has too many parameters: {error}") from error


def audience_of(request: Request) -> Audience:
    """For whom a report is wanted (`for` in the address): staff, unless it says otherwise.

    Raises:
        BadForm: for nobody that there are reports for.
    """
    asked = query_of(request).one("for", Audience.STAFF.value)
    if asked not in {*Audience}:
        raise BadForm(f"there is no report for {asked[:50]!r}; known: {', '.join(Audience)}")
    return Audience(asked)


def id_of(request: Request, name: str) -> str:
    """An id in the address; 404 for what is none, before any database sees it."""
    found = str(request.path_params[name])
    if not IDENTIFIER.fullmatch(found):
        raise HTTPException(404, "There is no such page.")
    return found


def batch_of(store: Store, request: Request) -> tuple[Batch, Progress]:
    """The batch in the address; 404 when there is none."""
    batch_id = id_of(request, "batch_id")
    try:
        return regrades.batch(store, batch_id), regrades.progress(store, batch_id)
    except UsageError:
        raise HTTPException(404, f"There is no batch {batch_id}.") from None


def whereabouts_of(store: Store, request: Request) -> Whereabouts:
    """The submission that the address names, itself or by one of its runs; 404 when there is none."""
    asked = id_of(request, "submission_id")
    try:
        return operations.whereabouts(store, asked)
    except UnknownId:
        raise HTTPException(404, f"There is no submission and no run {asked}, and none that begins so.") from None


def diff_now(site: Site, batch: Batch, progress: Progress) -> Diff:
    """What the batch changes; a recent answer will do while nothing moved."""
    key = ("diff", batch.batch_id, batch.state, tuple(sorted(progress.counts.items())))
    return site.remembered.get(key, lambda: fresh_diff(site.store, batch, progress))


def fresh_diff(store: Store, batch: Batch, progress: Progress) -> Diff:
    """What the batch changes at this moment."""
    return diff_of(batch, progress, regrades.changes(store, batch.batch_id))
