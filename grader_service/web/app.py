"""Joins pages, guard and failures into one ASGI application."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from grader_service.web.failures import HANDLERS
from grader_service.web.guard import Guard
from grader_service.web.pages import (
    actions,
    api,
    audit,
    batches,
    cancelling,
    frames,
    oidc,
    overview,
    planning,
    reviews,
    signing,
    submissions,
)
from grader_service.web.site import Site

ROUTES = (
    Route("/", overview.show),
    Route("/live/queue", overview.live),
    Route("/submissions", submissions.listing),
    Route("/submissions/{submission_id}", submissions.show),
    Route("/submissions/{submission_id}/cancel", cancelling.confirm),
    Route("/submissions/{submission_id}/cancel", cancelling.act, methods=["POST"]),
    Route("/reviews", reviews.queue),
    Route("/reviews/{submission_id}/{check_id}", reviews.show),
    Route("/reviews/{submission_id}/{check_id}", reviews.act, methods=["POST"]),
    Route("/verdicts/{verdict_id}", submissions.verdict),
    Route("/verdicts/{verdict_id}/report", frames.verdict_report),
    Route("/verdicts/{verdict_id}/json", frames.verdict_json),
    Route("/cohorts", overview.cohort_list),
    Route("/cohorts/report", frames.cohort_report),
    Route("/batches", batches.listing),
    Route("/batches/new", planning.form),
    Route("/batches/new", planning.plan, methods=["POST"]),
    Route("/batches/{batch_id}", batches.show),
    Route("/batches/{batch_id}/live", batches.live),
    Route("/batches/{batch_id}/diff", batches.diff),
    Route("/batches/{batch_id}/changes", batches.changes),
    Route("/batches/{batch_id}/report", frames.batch_report),
    Route("/batches/{batch_id}/do/{action}", actions.confirm),
    Route("/batches/{batch_id}/do/{action}", actions.act, methods=["POST"]),
    Route("/audit", audit.show),
    Route("/login", signing.form),
    Route("/login", signing.sign_in, methods=["POST"]),
    Route("/login/oidc", oidc.begin),
    Route(oidc.CALLBACK, oidc.callback),
    Route("/logout", signing.sign_out, methods=["POST"]),
    Route("/static/{digest}/{name}", frames.static),
    Route("/alive", frames.alive),
    Route("/ready", frames.ready),
    Route("/api/queue", api.queue),
    Route("/api/reconcile", api.reconcile),
    Route("/api/batches", api.batches),
    Route("/api/batches/{batch_id}", api.batch),
    Route("/api/batches/{batch_id}/diff", api.diff),
)


def make_app(site: Site) -> Starlette:
    """The page's application over this site."""
    app = Starlette(
        routes=list(ROUTES),
        middleware=[Middleware(Guard, site=site)],
        exception_handlers=HANDLERS,
    )
    app.state.site = site
    return app
