"""Batches of re-grades: the list, one with its progress, its diff and its audit trail, and its submissions."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, get_args

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from grader_service.model.diff import CHANGED, Diff, Filter, Kind, Result, Transition
from grader_service.model.regrade import Batch, BatchState, ItemState, Progress
from grader_service.regrade.filters import rows_of
from grader_service.report.cohort.selection import described
from grader_service.report.cohort.wording import KINDS, LEVELS, STATES
from grader_service.store import regrades
from grader_service.store.regrades import dead_lettered
from grader_service.web import queries
from grader_service.web.failures import BadForm
from grader_service.web.forms import Fields
from grader_service.web.lookup import batch_of, diff_now, query_of
from grader_service.web.pages.actions import offered
from grader_service.web.queries import PAGE
from grader_service.web.rendering import link, page
from grader_service.web.site import Site, site_of, visitor_of

MOVING = frozenset({BatchState.RUNNING})
"""States in which figures change by themselves."""
_AT_WORK = frozenset({BatchState.RUNNING, BatchState.PAUSED})
"""What a paused batch has in hand is finished."""
_MOST_BATCHES = 200
_MOST_MOVERS = 12


def listing(request: Request) -> Response:
    """The newest batches first."""
    site = site_of(request)
    found = regrades.batches(site.store)
    shown = found[:_MOST_BATCHES]
    counts = _counts(site, shown)
    rows = [
        (batch, Progress(batch_id=batch.batch_id, state=batch.state, counts=counts.get(batch.batch_id, {})))
        for batch in shown
    ]
    return page(request, "batches.html.j2", rows=rows, beyond=len(found) - len(rows))


def _counts(site: Site, found: Sequence[Batch]) -> Mapping[str, Mapping[ItemState, int]]:
    """Items by batch and state; of batches in which nothing moves a recent answer will do."""
    at_work = [batch.batch_id for batch in found if batch.state in _AT_WORK]
    at_rest = [batch for batch in found if batch.state not in _AT_WORK]
    key = ("counts", *((batch.batch_id, batch.state, batch.finished_at) for batch in at_rest))
    ids = [batch.batch_id for batch in at_rest]
    settled = site.remembered.get(key, lambda: queries.item_counts(site.store, ids))
    return {**settled, **queries.item_counts(site.store, at_work)}


def show(request: Request) -> Response:
    """One batch; its diff is told at once where that is quick, and not while it runs, when it would be old at once."""
    site = site_of(request)
    batch, progress = batch_of(site.store, request)
    stuck = progress.counts.get(ItemState.NEEDS_ATTENTION)
    quick = batch.state not in MOVING and progress.done > 0 and progress.total <= site.compares_at_once
    return page(
        request,
        "batch.html.j2",
        batch=batch,
        progress=progress,
        dead_lettered=dead_lettered(site.store, batch.batch_id) if stuck else (),
        **told(diff_now(site, batch, progress) if quick else None),
        selection=described(batch.selection),
        actions=offered(batch, progress) if visitor_of(request).operates else (),
        events=regrades.events(site.store, batch.batch_id),
        states=STATES,
        levels=LEVELS,
    )


def diff(request: Request) -> Response:
    """What a batch changes; the page of a large batch takes it from here when it is there."""
    site = site_of(request)
    batch, progress = batch_of(site.store, request)
    return page(request, "diff_page.html.j2", batch=batch, **told(diff_now(site, batch, progress)))


def told(found: Diff | None) -> dict[str, Any]:
    """What a template needs to tell a diff."""
    return {
        "diff": found,
        "matrix": _matrix(found.statuses) if found is not None else None,
        "kinds": KINDS,
        "changed_kinds": CHANGED,
        "most_movers": _MOST_MOVERS,
    }


def _matrix(transitions: Iterable[Transition]) -> dict[str, Any]:
    """Statuses before, statuses after, and how many submissions went from one to the other."""
    cells = {(found.old, found.new): found.submissions for found in transitions}
    olds, news = {old for old, _ in cells}, {new for _, new in cells}
    order = get_args(Result)
    return {
        "olds": [name for name in order if name in olds],
        "news": [name for name in order if name in news],
        "cells": cells,
    }


def live(request: Request) -> Response:
    """The part that the page fetches again while a batch runs."""
    batch, progress = batch_of(site_of(request).store, request)
    return page(request, "progress.html.j2", batch=batch, progress=progress, states=STATES)


def changes(request: Request) -> Response:
    """The submissions of a batch with both verdicts; goes on after `after`."""
    site, query = site_of(request), query_of(request)
    batch, progress = batch_of(site.store, request)
    chosen = filter_of(query)
    after = query.one("after")
    later = regrades.changes(site.store, batch.batch_id, after=after)
    found = list(islice(rows_of(later, chosen), PAGE + 1))
    rows = found[:PAGE]
    kept = {name: query.many(name) for name in ("q", "kind", "check", "old", "new", "code", "differs")}
    here = f"/batches/{batch.batch_id}/changes"
    return page(
        request,
        "changes.html.j2",
        batch=batch,
        progress=progress,
        rows=rows,
        chosen=chosen,
        filtered=any(kept.values()),
        kinds=KINDS,
        results=get_args(Result),
        checks=sorted({check for lab in batch.labs for check in lab.check_versions}),
        first=link(here, **kept) if after else "",
        following=link(here, **kept, after=rows[-1][1].submission_id) if len(found) > PAGE else "",
    )


def filter_of(query: Fields) -> Filter:
    """The filter in an address.

    Raises:
        BadForm: it holds what no verdict holds.
    """
    try:
        return Filter(
            text=query.one("q"),
            check=query.one("check") or None,
            old=query.one("old") or None,
            new=query.one("new") or None,
            code=query.one("code") or None,
            differs=bool(query.one("differs")),
            kinds=tuple(Kind(kind) for kind in query.many("kind")),
        )
    except ValidationError as error:
        wrong = ", ".join(f"{problem['loc'][0]}: {problem['msg']}" for problem in error.errors(include_url=False))
        raise BadForm(f"this filter cannot be used: {wrong}") from None
    except ValueError as error:
        raise BadForm(f"this filter cannot be used: {error}; kinds are {', '.join(Kind)}") from None
