"""Planning a batch: a form, what it would do, and only then the batch."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import get_args

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from grader_service.errors import UsageError
from grader_service.model.regrade import MOST_REPEATS, Batch, Selection, alternatives
from grader_service.model.verdict import Outcome, Status
from grader_service.regrade.planning import PlanRequest, Wanted
from grader_service.regrade.planning import plan as plan_batch
from grader_service.report.cohort.selection import described
from grader_service.report.cohort.wording import LEVELS
from grader_service.web import queries
from grader_service.web.failures import BadForm
from grader_service.web.forms import Fields
from grader_service.web.lookup import query_of
from grader_service.web.pages.inputs import gpu_budget_of
from grader_service.web.rendering import page
from grader_service.web.site import fields_of, require_operator, site_of, visitor_of

_SEPARATORS, _LINE_END = re.compile(r"[\n,;]+"), re.compile(r"\n")
_LONGEST_REASON = 8192
_LEVELS: Mapping[str, Wanted] = {level: level for level in get_args(Wanted)}


def form(request: Request) -> Response:
    """The empty form, or one with a cohort or lab that a link names."""
    require_operator(request)
    return _form(request, query_of(request))


def plan(request: Request) -> Response:
    """Shows what the batch would do; makes it when that was seen."""
    site, fields = site_of(request), fields_of(request)
    try:
        wanted = request_of(fields)
        dry = fields.one("do") != "create"
        batch = plan_batch(site.acting, site.registry, wanted, visitor_of(request).actor, dry_run=dry)
    except UsageError as error:
        return _form(request, fields, problem=str(error), status=400)
    if dry:
        return _form(request, fields, preview=batch)
    return RedirectResponse(f"/batches/{batch.batch_id}", 303)


def request_of(fields: Fields) -> PlanRequest:
    """What the form asks for.

    Raises:
        BadForm: a field holds what it must not; says which.
    """
    level = _LEVELS.get(fields.one("level") or "auto")
    if level is None:
        raise BadForm(f"the level is one of {', '.join(_LEVELS)}; {fields.one('level')[:50]!r} came")
    reason = fields.one("reason")
    if not 0 < len(reason) <= _LONGEST_REASON:
        raise BadForm(f"say why, in 1 to {_LONGEST_REASON} characters: the reason stands in the audit log")
    return PlanRequest(
        selection=selection_of(fields),
        reason=reason,
        level=level,
        repeats=_repeats(fields),
        gpu_budget_s=gpu_budget_of(fields, "gpu_budget_h"),
    )


def selection_of(fields: Fields) -> Selection:
    """Which submissions the form chooses.

    Raises:
        BadForm: a field holds what no submission has; says which.
    """
    try:
        return Selection(
            cohorts=_lines(fields, "cohorts"),
            labs=_listed(fields, "labs"),
            learners=_lines(fields, "learners"),
            submissions=_listed(fields, "submissions"),
            statuses=tuple(Status(status) for status in fields.many("statuses")),
            checks=alternatives(
                (check, Outcome(outcome) if outcome else None) for check, outcome in _pairs(fields, "checks")
            ),
            codes=_listed(fields, "codes"),
            received_from=_time(fields, "received_from"),
            received_before=_time(fields, "received_before"),
            image_digests=_lines(fields, "image_digests"),
            check_versions=alternatives(_pairs(fields, "check_versions")),
            latest_only=bool(fields.one("latest_only")),
        )
    except ValidationError as error:
        wrong = "; ".join(
            f"{str(problem['loc'][0]).replace('_', ' ')}: {problem['msg']}, got {str(problem['input'])[:80]!r}"
            for problem in error.errors(include_url=False)[:5]
        )
        raise BadForm(f"the selection cannot be used: {wrong}") from None
    except ValueError as error:
        raise BadForm(f"the selection cannot be used: {error}") from None


def _form(
    request: Request, fields: Fields, *, preview: Batch | None = None, problem: str = "", status: int = 200
) -> Response:
    return page(
        request,
        "plan.html.j2",
        status=status,
        fields=fields,
        carried=[(name, value) for name, value in fields.flat() if name not in {"csrf", "do"}],
        preview=preview,
        problem=problem,
        selection=described(preview.selection) if preview is not None else (),
        statuses=[status.value for status in Status],
        outcomes=[outcome.value for outcome in Outcome],
        levels=LEVELS,
        most_repeats=MOST_REPEATS,
        choices=queries.choices(site_of(request).store),
    )


def _lines(fields: Fields, name: str) -> tuple[str, ...]:
    """Names of anybody's making, one a line, each once."""
    return _listed(fields, name, _LINE_END)


def _listed(fields: Fields, name: str, separators: re.Pattern[str] = _SEPARATORS) -> tuple[str, ...]:
    """Names between line ends, commas or semicolons, each once."""
    found = (part.strip() for text in fields.many(name) for part in separators.split(text))
    return tuple(dict.fromkeys(part for part in found if part))


def _pairs(fields: Fields, name: str) -> list[tuple[str, str]]:
    """Entries such as `throughput_ratio=failed`; without `=` the second part is empty."""
    return [(key.strip(), value.strip()) for key, _, value in (part.partition("=") for part in _listed(fields, name))]


def _time(fields: Fields, name: str) -> float | None:
    text = fields.one(name)
    if not text:
        return None
    try:
        when = datetime.fromisoformat(text)
        return (when.replace(tzinfo=UTC) if when.tzinfo is None else when).timestamp()
    except (ValueError, OverflowError, OSError):
        raise BadForm(
            f"{name.replace('_', ' ')} is a time in UTC such as 2026-10-01T00:00, got {text[:50]!r}"
        ) from None


def _repeats(fields: Fields) -> int:
    text = fields.one("repeats") or "1"
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= MOST_REPEATS):
        raise BadForm(f"repetitions are a number from 1 to {MOST_REPEATS}, got {text[:50]!r}")
    return int(text)
