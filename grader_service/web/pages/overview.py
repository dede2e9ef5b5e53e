"""The first page: what waits, what is stuck, and which devices are there; and the list of cohorts."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from grader_service.model.regrade import Batch, BatchState, Progress
from grader_service.store import cohorts, devices, operations, regrades, workers
from grader_service.store.engine import Store
from grader_service.store.operations import QueueState
from grader_service.store.tables import RunState
from grader_service.web import queries
from grader_service.web.rendering import page
from grader_service.web.site import site_of

SILENT_S = 120.0
"""A device whose worker was not heard of for this long is shown as silent."""
_BUSY = frozenset({BatchState.RUNNING, BatchState.PAUSED})
_MOST_BATCHES = 5
_OF_LEARNERS = ("preflight", "live")
_WAITING = (RunState.RUN_QUEUED.value, RunState.JUDGE_QUEUED.value)
_WORKING = (RunState.RUNNING.value, RunState.JUDGING.value)
STATE_WORDS = {
    RunState.RUN_QUEUED.value: "waits for a device",
    RunState.RUNNING.value: "runs",
    RunState.JUDGE_QUEUED.value: "waits to be judged",
    RunState.JUDGING.value: "is being judged",
    RunState.DONE.value: "done",
    RunState.NEEDS_ATTENTION.value: "needs attention",
    RunState.CANCELLED.value: "taken back",
}


def show(request: Request) -> Response:
    """The whole page."""
    return page(request, "overview.html.j2", **_state(site_of(request).store))


def live(request: Request) -> Response:
    """The part that the page fetches again."""
    return page(request, "overview_live.html.j2", **_state(site_of(request).store))


def cohort_list(request: Request) -> Response:
    """Every cohort and lab with what its learners reached."""
    return page(request, "cohorts.html.j2", rows=cohorts.cohorts(site_of(request).store))


def _total(queue: QueueState, states: tuple[str, ...], *purposes: str) -> int:
    """Runs in these states; for any purpose where none is named."""
    return sum(n for (state, of), n in queue.counts.items() if state in states and of in (purposes or {of}))


def _state(store: Store) -> dict[str, Any]:
    queue = operations.queue_state(store)
    shown = [batch for batch in regrades.batches(store) if batch.state in _BUSY][:_MOST_BATCHES]
    busy: list[tuple[Batch, Progress]] = [(batch, regrades.progress(store, batch.batch_id)) for batch in shown]
    return {
        "queue": queue,
        "figures": {
            "waiting_live": _total(queue, _WAITING, *_OF_LEARNERS),
            "waiting_regrade": _total(queue, _WAITING, "regrade"),
            "working": _total(queue, _WORKING),
            "stuck": _total(queue, (RunState.NEEDS_ATTENTION.value,)),
            "undelivered": queue.undelivered,
            "oldest_live_s": max((queue.oldest_s[of] for of in _OF_LEARNERS if of in queue.oldest_s), default=None),
        },
        "rows": [
            (state.value, STATE_WORDS[state.value], live, regrade)
            for state, live, regrade in (
                (state, _total(queue, (state.value,), *_OF_LEARNERS), _total(queue, (state.value,), "regrade"))
                for state in RunState
            )
            if live or regrade
        ],
        "devices": devices.devices(store),
        "workers": workers.workers(store),
        "silent_s": SILENT_S,
        "busy": busy,
        "graded": queries.graded_lately(store),
    }
