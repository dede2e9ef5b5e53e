"""The same figures as JSON, for scripts that send `Authorization: Bearer TOKEN`; nothing here changes anything."""

from collections.abc import Sequence
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from grader_service.store import devices, operations, reconciling, regrades, workers
from grader_service.web.failures import BadForm
from grader_service.web.lookup import batch_of, diff_now
from grader_service.web.site import site_of

_DEVICE = ("device_id", "host", "model", "state", "reason", "seen_s")
_WORKER = ("worker_id", "role", "host", "state", "reason", "seen_s")
_MOST_BATCHES = 200
_MOST_IDS = 200
"""In one question: an address has a length that proxies take."""


def queue(request: Request) -> Response:
    """Runs by state and purpose, the oldest that wait, undelivered answers, devices, and workers."""
    store = site_of(request).store
    state = operations.queue_state(store)
    return JSONResponse(
        {
            "runs": [{"state": name, "purpose": of, "runs": n} for (name, of), n in sorted(state.counts.items())],
            "oldest_s": dict(state.oldest_s),
            "undelivered": state.undelivered,
            "needs_attention": state.stuck,
            "devices": [_named(_DEVICE, device) for device in devices.devices(store)],
            "workers": [_named(_WORKER, worker) for worker in workers.workers(store)],
        }
    )


def _named(names: Sequence[str], of: object) -> dict[str, object]:
    return {name: getattr(of, name) for name in names}


def reconcile(request: Request) -> Response:
    """What became of submissions, by `id=` once for each: which of a platform's never arrived."""
    ids = request.query_params.getlist("id")
    if not ids or len(ids) > _MOST_IDS:
        raise BadForm(f"expected ids of submissions, id=… up to {_MOST_IDS} times, got {len(ids)}")
    found = reconciling.reconcile(site_of(request).store, dict.fromkeys(ids))
    return JSONResponse([asdict(one) for one in found])


def batches(request: Request) -> Response:
    """The newest batches first."""
    found = regrades.batches(site_of(request).store)[:_MOST_BATCHES]
    return JSONResponse([batch.model_dump(mode="json") for batch in found])


def batch(request: Request) -> Response:
    """One batch and how far it is."""
    found, progress = batch_of(site_of(request).store, request)
    return JSONResponse({"batch": found.model_dump(mode="json"), "progress": progress.model_dump(mode="json")})


def diff(request: Request) -> Response:
    """What a batch changes, as `grader regrade diff --json` says it."""
    site = site_of(request)
    return JSONResponse(diff_now(site, *batch_of(site.store, request)).model_dump(mode="json"))
