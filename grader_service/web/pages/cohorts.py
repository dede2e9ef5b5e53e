"""The cohorts that there are."""

from starlette.requests import Request
from starlette.responses import Response

from grader_service.store import cohorts
from grader_service.web.rendering import page
from grader_service.web.site import site_of


def listing(request: Request) -> Response:
    """Every cohort and lab with what its learners reached."""
    return page(request, "cohorts.html.j2", rows=cohorts.cohorts(site_of(request).store))
