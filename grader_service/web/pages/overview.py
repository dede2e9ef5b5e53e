"""The first page: what waits, what is stuck, and which devices are there."""

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from grader_service.model.regrade import Batch, BatchState, Progress
from grader_service.store import devices, operations, regrades, workers
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
STATE_WORDS = {
    RunState.RUN_QUEUED.value: "waits for a device",
    RunState.RUNNING.value: "runs",
    RunState.JUDGE_QUEUED.value: "waits to be judged",
    RunState.JUDGING.value: "is being judged",
    RunState.DONE.value: "done",
    RunState.NEEDS_ATTENTION.value: "needs attention",
    RunState.CANCELLED.value: "taken back",
}


@dataclass(frozen=True)
class Figures:
    """The numbers on top."""

    waiting_live: int
    waiting_regrade: int
    working: int
    stuck: int
    undelivered: int
    oldest_live_s: float | None


def show(request: Request) -> Response:
    """The whole page."""
    store = site_of(request).store
    return page(request, "overview.html.j2", **_state(store))


def live(request: Request) -> Response:
    """The part that the page fetches again."""
    return page(request, "overview_live.html.j2", **_state(site_of(request).store))


def figures(queue: QueueState) -> Figures:
    """What the counts of runs say in a few numbers."""
    return Figures(
        waiting_live=_total(queue, queries.WAITING_STATES, *_OF_LEARNERS),
        waiting_regrade=_total(queue, queries.WAITING_STATES, "regrade"),
        working=_total(queue, queries.WORKING_STATES),
        stuck=_total(queue, (RunState.NEEDS_ATTENTION.value,)),
        undelivered=queue.undelivered,
        oldest_live_s=max((queue.oldest_s[of] for of in _OF_LEARNERS if of in queue.oldest_s), default=None),
    )


def _total(queue: QueueState, states: tuple[str, ...], *purposes: str) -> int:
    """Runs in these states; for any purpose where none is named."""
    return sum(n for (state, of), n in queue.counts.items() if state in states and of in (purposes or {of}))


def _state(store: Store) -> dict[str, Any]:
    queue = operations.queue_state(store)
    shown = [batch for batch in regrades.batches(store) if batch.state in _BUSY][:_MOST_BATCHES]
    busy: list[tuple[Batch, Progress]] = [(batch, regrades.progress(store, batch.batch_id)) for batch in shown]
    return {
        "queue": queue,
        "figures": figures(queue),
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
