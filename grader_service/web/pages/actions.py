"""What an operator does with a batch; each action calls what `grader regrade` calls, under the operator's name.

What cannot be taken back with one click stands behind a page that says what would happen.
"""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from grader_service.model.diff import Diff, Kind
from grader_service.model.regrade import Batch, BatchState, ItemState, Progress
from grader_service.regrade.escalating import escalate
from grader_service.store import regrade_apply, regrade_states
from grader_service.store.engine import Store
from grader_service.store.regrade_apply import MOST_REASON
from grader_service.web.failures import BadForm
from grader_service.web.forms import Fields
from grader_service.web.lookup import batch_of, fresh_diff
from grader_service.web.pages.inputs import NOTIFY, gpu_budget_of, notify_of, reason_of
from grader_service.web.rendering import count, page
from grader_service.web.site import fields_of, require_operator, site_of, visitor_of

Run = Callable[[Store, str, str, Fields], object]
"""Does an action: store, batch id, actor, and the form that was sent."""
_KEPT = "The verdicts in force stay in force; no learner sees a difference."


@dataclass(frozen=True)
class Action:
    """One thing to do with a batch."""

    name: str
    label: str
    states: tuple[BatchState, ...]
    """In which it is offered; whether it is allowed is decided by the store."""
    run: Run
    asks: bool = False
    """Whether a page asks first."""
    types_id: bool = False
    """Whether that page asks for the batch's id."""
    compares: bool = False
    """Whether that page tells of the batch's verdicts; comparing those of a large batch takes long."""
    explains: bool = False
    """Whether a reason may be given."""
    budgets: bool = False
    """Whether a GPU budget may be given."""
    notifies: bool = False
    danger: bool = False


def _budgeted(resume: Callable[..., object]) -> Run:
    return lambda store, batch_id, actor, fields: resume(store, batch_id, actor, gpu_budget_s=gpu_budget_of(fields))


def _explained(stop: Callable[[Store, str, str, str], object]) -> Run:
    return lambda store, batch_id, actor, fields: stop(store, batch_id, actor, reason_of(fields))


def _apply(store: Store, batch_id: str, actor: str, fields: Fields) -> None:
    notify, unfinished = notify_of(fields), bool(fields.one("unfinished"))
    regrade_apply.apply(store, batch_id, actor, unfinished=unfinished, notify=notify, reason=reason_of(fields))


def _revert(store: Store, batch_id: str, actor: str, fields: Fields) -> None:
    regrade_apply.revert(store, batch_id, actor, notify=notify_of(fields), reason=reason_of(fields))


_STOPPABLE = (BatchState.PLANNED, BatchState.RUNNING, BatchState.PAUSED)
ACTIONS = {
    action.name: action
    for action in (
        Action(
            "start",
            "Start",
            (BatchState.PLANNED,),
            lambda store, batch, actor, _: regrade_states.start(store, batch, actor),
        ),
        Action("pause", "Pause", (BatchState.RUNNING,), _explained(regrade_states.pause), explains=True),
        Action("resume", "Resume", (BatchState.PAUSED,), _budgeted(regrade_states.resume), budgets=True),
        Action(
            "retry",
            "Try failed items again",
            (BatchState.RUNNING, BatchState.PAUSED, BatchState.FINISHED),
            lambda store, batch, actor, _: regrade_states.retry(store, batch, actor),
        ),
        Action(
            "apply",
            "Apply …",
            (BatchState.FINISHED, BatchState.CANCELLED, BatchState.REVERTED),
            _apply,
            asks=True,
            types_id=True,
            compares=True,
            explains=True,
            notifies=True,
        ),
        Action(
            "escalate",
            "Run the undecided …",
            (BatchState.FINISHED,),
            _budgeted(escalate),
            asks=True,
            compares=True,
            budgets=True,
        ),
        Action(
            "revert",
            "Revert …",
            (BatchState.APPLIED,),
            _revert,
            asks=True,
            compares=True,
            explains=True,
            notifies=True,
            danger=True,
        ),
        Action(
            "cancel", "Cancel …", _STOPPABLE, _explained(regrade_states.cancel), asks=True, explains=True, danger=True
        ),
        Action(
            "discard",
            "Discard …",
            (BatchState.PLANNED, BatchState.PAUSED, BatchState.FINISHED, BatchState.CANCELLED),
            _explained(regrade_states.discard),
            asks=True,
            explains=True,
            danger=True,
        ),
    )
}


def offered(batch: Batch, progress: Progress) -> list[Action]:
    """The actions that make sense now; what the diff offers stands beside its figures."""
    found = [action for action in ACTIONS.values() if batch.state in action.states and action.name != "escalate"]
    if not progress.counts.get(ItemState.NEEDS_ATTENTION):
        found = [action for action in found if action.name != "retry"]
    if not progress.done:
        found = [action for action in found if action.name != "apply"]
    return found


def confirm(request: Request) -> Response:
    """Says exactly what an action would do, and asks; also for what needs no asking, but may have a reason."""
    site, action = site_of(request), _action(request)
    batch, progress = batch_of(site.store, request)
    require_operator(request)
    if not (action.asks or action.explains) or batch.state not in action.states:
        return RedirectResponse(f"/batches/{batch.batch_id}", 303)
    diff = fresh_diff(site.store, batch, progress) if action.compares else None
    return page(
        request,
        "confirm.html.j2",
        batch=batch,
        progress=progress,
        action=action,
        consequences=foreseen(action.name, progress) if diff is None else compared(action.name, diff),
        unfinished=diff.open if diff is not None and action.name == "apply" else 0,
        notify=NOTIFY,
        most_reason=MOST_REASON,
    )


def act(request: Request) -> Response:
    """Does it, once."""
    site, fields, action = site_of(request), fields_of(request), _action(request)
    batch, _ = batch_of(site.store, request)
    if action.types_id and fields.one("typed") != batch.batch_id:
        raise BadForm(
            f"type the batch's id to confirm: {batch.batch_id!r} was expected, {fields.one('typed')[:60]!r} came"
        )
    if action.asks and fields.one("confirmed") != "yes":
        raise BadForm(f"{action.name} asks first: open the batch and choose it there")
    action.run(site.acting, batch.batch_id, visitor_of(request).actor, fields)
    return RedirectResponse(f"/batches/{batch.batch_id}", 303)


def _action(request: Request) -> Action:
    name = request.path_params["action"]
    if name not in ACTIONS:
        raise HTTPException(404, f"There is no action {name}.")
    return ACTIONS[name]


def foreseen(name: str, progress: Progress) -> list[str]:
    """What an action would do now, sentence by sentence, where no verdict in force is touched."""
    left = progress.total - progress.done
    if name == "pause":
        return [f"No more of the {count(left)} items that are left are handed out; what is in hand is finished.", _KEPT]
    if name == "cancel":
        return [
            f"{count(left)} of {count(progress.total)} items will not be graded again.",
            f"{count(progress.done)} new verdicts are staged and can be looked at.",
            _KEPT,
            "A cancelled batch does not go on again.",
        ]
    return [f"{count(progress.done)} new verdicts are given up and never come in force.", _KEPT]


def compared(name: str, diff: Diff) -> list[str]:
    """What an action would do now to verdicts, sentence by sentence."""
    if name == "escalate":
        return [
            f"{count(diff.undecided_by_evidence)} submissions whose stored evidence does not decide a check are run "
            "again, which costs GPU time; their verdicts of this batch are made anew from that.",
            _KEPT,
        ]
    if name == "revert":
        return [
            f"The verdicts from before come in force again for up to {count(diff.compared)} submissions.",
            f"{_outdated(diff)} and stay as they are.",
            "The verdicts of this batch are kept, superseded.",
        ]
    return [
        f"{count(diff.compared)} new verdicts come in force, in one transaction.",
        f"{count(diff.changed)} submissions get another result: {count(diff.count(Kind.NEWLY_FAILING))} newly failing, "
        f"{count(diff.count(Kind.NEWLY_PASSING))} newly passing, {count(diff.count(Kind.NEWLY_UNDECIDED))} newly "
        f"undecided, {count(diff.count(Kind.OTHERWISE_CHANGED))} otherwise.",
        f"{count(diff.count(Kind.UNCHANGED))} say the same as before.",
        f"{count(diff.newer)} of those that differ have a newer submission of the same learner, which keeps its own "
        "verdict.",
        f"{_outdated(diff)} and are left alone.",
        "It can be undone with Revert.",
    ]


def _outdated(diff: Diff) -> str:
    return f"{count(diff.count(Kind.OUTDATED))} submissions got another verdict meanwhile"
