"""`grader regrade`: plans batches of re-grades, works on them, and puts their verdicts in force.

Each command imports what it uses: `grader grade` should not wait for a database driver.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from grader_service.cli import regrade_diff
from grader_service.cli.arguments import operator, service_store
from grader_service.cli.loading import group
from grader_service.cli.output import console, say, table_of, when
from grader_service.cli.selecting import check_outcomes, check_versions, moment, named
from grader_service.errors import UsageError
from grader_service.host.garbage import look_seldom
from grader_service.model.base import neutralise
from grader_service.model.regrade import Batch, ItemState

_DETAIL_SHOWN = 500
app = group(
    "Re-grade cohorts: plan, start, watch, diff, apply, revert. Old verdicts stay in force until `apply`.",
    callback=look_seldom,
)
app.command("diff")(regrade_diff.diff)
app.command("flakes")(regrade_diff.flakes)

BatchId = Annotated[str, typer.Argument(metavar="BATCH", help="As `grader regrade list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
ReasonOption = Annotated[str, typer.Option("--reason", "-m", help="Reason, for the audit trail.")]
NotifyOption = Annotated[
    Literal["changed", "all", "none"],
    typer.Option(help="Who is sent the new verdict: learners whose verdict changed, all, or none."),
]


@app.command("plan")
def plan(
    *,
    reason: ReasonOption,
    cohort: Annotated[list[str] | None, typer.Option(help="Of these cohorts; repeatable, like the next ones.")] = None,
    lab: Annotated[list[str] | None, typer.Option(help="Of these labs.")] = None,
    learner: Annotated[list[str] | None, typer.Option(help="Of these learners.")] = None,
    submission: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="These submissions, by ids as `grader status` takes them.")
    ] = None,
    status: Annotated[list[str] | None, typer.Option(help="With this status in force.")] = None,
    check: Annotated[
        list[str] | None,
        typer.Option(metavar="ID[=OUTCOME]", help="Judged by this check, with this outcome; or one of several."),
    ] = None,
    code: Annotated[list[str] | None, typer.Option(help="With this code, such as ratio.too_low.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Received then or later, ISO 8601.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Received before then.")] = None,
    image_digest: Annotated[list[str] | None, typer.Option(help="Run in this image.")] = None,
    check_version: Annotated[
        list[str] | None, typer.Option(metavar="ID=VERSION", help="Judged by this version of a check.")
    ] = None,
    latest: Annotated[bool, typer.Option(help="Only the last submission of each learner.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every graded submission.")] = False,
    level: Annotated[
        Literal["auto", "judge", "run"],
        typer.Option(help="judge: from stored evidence. run: execute again. auto: judge where the evidence suffices."),
    ] = "auto",
    lab_file: Annotated[
        list[Path] | None, typer.Option(help="Grade by this file instead of the installed lab of the same id.")
    ] = None,
    repeat: Annotated[int, typer.Option(metavar="N", help="Grade each N times, to see what varies.")] = 1,
    gpu_hours: Annotated[float | None, typer.Option(min=0.0, help="Pause when this much GPU time is used.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Show the plan, but make no batch.")] = False,
    as_json: AsJson = False,
) -> None:
    """Plan a batch: show how many submissions would be graded again, how, and at what cost.

    Nothing runs before `start`, and no verdict changes before `apply`.
    """
    from checks.registry import Registry
    from grader_service.regrade.planning import PlanRequest
    from grader_service.regrade.planning import plan as make_plan
    from grader_service.store.ids import submission_named

    store = service_store()
    selection = named(
        cohorts=cohort,
        labs=lab,
        learners=learner,
        submissions=[submission_named(store, one) for one in submission or ()],
        statuses=status,
        codes=code,
        image_digests=image_digest,
        checks=check_outcomes(check or ()),
        check_versions=check_versions(check_version or ()),
        received_from=moment(since),
        received_before=moment(until),
        latest_only=latest,
    )
    if everything == bool(selection.model_dump(exclude_defaults=True, exclude={"latest_only"})):
        raise UsageError("name what to grade again, such as --cohort NAME or --status failed; or give --all instead")
    request = PlanRequest(
        selection=selection,
        reason=reason,
        level=level,
        repeats=repeat,
        gpu_budget_s=None if gpu_hours is None else gpu_hours * 3600.0,
        lab_files=tuple(lab_file or ()),
    )
    batch = make_plan(store, Registry(), request, operator(), dry_run=dry_run)
    if as_json:
        typer.echo(batch.model_dump_json(indent=2))
        return
    _show_plan(batch, dry_run=dry_run)


def _show_plan(batch: Batch, *, dry_run: bool) -> None:
    estimate = batch.estimate
    rows = (
        (str(count.submissions), count.level.value if count.level else "left out", count.text)
        for count in estimate.counts
    )
    console().print(table_of("submissions", "level", "why", rows=rows))
    for lab in batch.labs:
        say(f"graded by: {lab.lab} {lab.version} of {lab.origin} ({lab.sha256[:12]})")
    times = f", {batch.repeats} times each" if batch.repeats > 1 else ""
    say(f"verdicts to make: {estimate.items}{times}; GPU time: {estimate.gpu_s / 3600:.2f} h")
    if estimate.eta_s is None:
        say("no estimate of the time: no device is ready for what has to run")
    else:
        say(f"about {_span(estimate.eta_s)} on an idle system")
    if dry_run:
        say("dry run: no batch was made")
    else:
        say(f"\nbatch {batch.batch_id}: start it with `grader regrade start {batch.batch_id}`")


@app.command("list")
def list_batches(*, as_json: AsJson = False) -> None:
    """List every batch, newest first."""
    from grader_service.store import regrades

    found = regrades.batches(service_store())
    if as_json:
        typer.echo(json.dumps([batch.model_dump(mode="json") for batch in found], indent=2))
        return
    rows = (
        (one.batch_id, one.state.value, str(one.estimate.items), one.level, one.author, one.reason) for one in found
    )
    console().print(table_of("batch", "state", "verdicts", "level", "author", "reason", rows=rows))


@app.command("show")
def show(batch_id: BatchId, *, as_json: AsJson = False) -> None:
    """Show a batch: its progress, failures of the grader, and who did what with it, and why."""
    from grader_service.store import regrades

    store = service_store()
    batch, progress = regrades.batch(store, batch_id), regrades.progress(store, batch_id)
    events = regrades.events(store, batch_id)
    stuck = progress.counts.get(ItemState.NEEDS_ATTENTION, 0)
    dead_lettered = regrades.dead_lettered(store, batch_id) if stuck else []
    if as_json:
        document = {
            "batch": batch.model_dump(mode="json"),
            "progress": progress.model_dump(mode="json"),
            "needs_attention": [vars(item) for item in dead_lettered],
            "events": [vars(event) for event in events],
        }
        typer.echo(json.dumps(document, indent=2, default=str))
        return
    say(f"{batch.batch_id}: {batch.state.value}. {batch.reason} ({batch.author})")
    if batch.note:
        say(batch.note, "yellow")
    counts = ", ".join(f"{count} {state.value}" for state, count in progress.counts.items())
    say(f"items: {counts or 'none'}; GPU time: {progress.gpu_used_s / 3600:.2f} h")
    for event in events:
        say(f"{when(event.at)}  {event.kind:<18} {event.actor}{_details(event.detail)}", "dim")
    for item in dead_lettered:
        of = f", repetition {item.repetition} of {batch.repeats}" if batch.repeats > 1 else ""
        say(f"needs attention: {item.submission_id}{of}: {item.error}", "red")
    if stuck > len(dead_lettered):
        say(f"… and {stuck - len(dead_lettered)} more that need attention", "red")


def _details(detail: Mapping[str, Any]) -> str:
    """What an event says beside its kind, its reason first, so that this is whole."""
    said = {name: value for name, value in detail.items() if value not in (None, "")}
    return f"  {neutralise(json.dumps(said, ensure_ascii=False, default=str))[:_DETAIL_SHOWN]}" if said else ""


@app.command("start")
def start(batch_id: BatchId) -> None:
    """Start a planned batch: workers (`grader worker regrade`) take it."""
    from grader_service.store import regrade_states

    regrade_states.start(service_store(), batch_id, operator())
    say(f"{batch_id} is running; follow it with `grader regrade watch {batch_id}`")


@app.command("pause")
def pause(batch_id: BatchId, *, reason: ReasonOption = "") -> None:
    """Pause a batch; items in progress are finished."""
    from grader_service.store import regrade_apply, regrade_states

    regrade_states.pause(service_store(), batch_id, operator(), regrade_apply.checked_reason(reason))
    say(f"{batch_id} is paused")


@app.command("resume")
def resume(
    batch_id: BatchId,
    gpu_hours: Annotated[
        float | None, typer.Option(min=0.0, help="New budget of the whole batch, with what is used already.")
    ] = None,
) -> None:
    """Resume a paused batch; finished items are not repeated."""
    from grader_service.store import regrade_states

    budget = None if gpu_hours is None else gpu_hours * 3600.0
    regrade_states.resume(service_store(), batch_id, operator(), gpu_budget_s=budget)
    say(f"{batch_id} is running")


@app.command("cancel")
def cancel(batch_id: BatchId, *, reason: ReasonOption = "") -> None:
    """Cancel a batch before it is finished; the verdicts that it has made can still be viewed."""
    from grader_service.store import regrade_apply, regrade_states

    regrade_states.cancel(service_store(), batch_id, operator(), regrade_apply.checked_reason(reason))
    say(f"{batch_id} is cancelled")


@app.command("retry")
def retry(batch_id: BatchId) -> None:
    """Retry items that used up their attempts through failures of the grader."""
    from grader_service.store import regrade_states

    count = regrade_states.retry(service_store(), batch_id, operator())
    say(f"{count} items are queued again")


@app.command("escalate")
def escalate(
    batch_id: BatchId,
    gpu_hours: Annotated[float | None, typer.Option(min=0.0, help="Pause when this much GPU time is used.")] = None,
) -> None:
    """Run submissions again that stored evidence does not decide, such as a ratio near a threshold. Uses GPU time."""
    from grader_service.regrade.escalating import escalate as run_again

    budget = None if gpu_hours is None else gpu_hours * 3600.0
    count = run_again(service_store(), batch_id, operator(), gpu_budget_s=budget)
    say(f"{count} submissions are run again; {batch_id} is running")


@app.command("discard")
def discard(batch_id: BatchId, *, reason: ReasonOption = "") -> None:
    """Discard a batch: its verdicts never come in force."""
    from grader_service.store import regrade_apply, regrade_states

    regrade_states.discard(service_store(), batch_id, operator(), regrade_apply.checked_reason(reason))
    say(f"{batch_id} is discarded; every verdict stays as it was")


@app.command("apply")
def apply(
    batch_id: BatchId,
    *,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Apply even if some have no new verdict; they keep the old one.")
    ] = False,
    notify: NotifyOption = "changed",
    reason: ReasonOption = "",
) -> None:
    """Put a batch's verdicts in force, all at once. Can be undone with `revert`."""
    from grader_service.store import regrade_apply, regrades

    store = service_store()
    _warn_of_other_labs(regrades.batch(store, batch_id))
    done = regrade_apply.apply(store, batch_id, operator(), unfinished=unfinished, notify=notify, reason=reason)
    say(f"{done.in_force} verdicts are in force now; {done.notified} answers are sent")
    if done.outdated:
        say(f"{done.outdated} submissions got another verdict since the batch was planned, and keep it")
    if done.unfinished:
        say(f"{done.unfinished} submissions had no new verdict, and keep the old one")


@app.command("revert")
def revert(batch_id: BatchId, *, notify: NotifyOption = "changed", reason: ReasonOption = "") -> None:
    """Undo `apply`: the verdicts from before are in force again."""
    from grader_service.store import regrade_apply

    done = regrade_apply.revert(service_store(), batch_id, operator(), notify=notify, reason=reason)
    say(f"{done.restored} verdicts from before are in force again; {done.notified} answers are sent")
    if done.outdated:
        say(f"{done.outdated} submissions got another verdict since the batch was applied, and keep it")


@app.command("watch")
def watch(
    batch_id: BatchId,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON per poll.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two polls.")] = 1.0,
) -> None:
    """Follow a batch until no work is left.

    Exit codes: 0 finished or applied, 1 items need attention, 4 paused, cancelled, discarded or reverted.
    """
    from grader_service.cli.watching import watch_batch

    raise typer.Exit(watch_batch(service_store(), batch_id, every_s=every, as_json=as_json))


def _warn_of_other_labs(batch: Batch) -> None:
    """Learners who submit from now on are graded by the installed lab: it should be the one that the batch used."""
    from checks.registry import Registry
    from grader_service.service.kept_labs import installed_lab

    registry = Registry()
    for kept in batch.labs:
        try:
            same = installed_lab(kept.lab, registry).sha256 == kept.sha256
        except UsageError:
            same = False
        if not same:
            text = (
                f"the installed lab {kept.lab} is not the one of this batch ({kept.origin}, version {kept.version}): "
                "new submissions are graded by the installed one until it is updated"
            )
            say(f"note: {text}", "yellow")


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
