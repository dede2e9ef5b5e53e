"""`grader reviews`: what checks leave to a person; list, show, accept, reject, export."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from grader_service.cli.arguments import ANY_ID, operator, service_store
from grader_service.cli.loading import group
from grader_service.cli.output import console, say, table_of, tell, when
from grader_service.cli.selecting import moment
from grader_service.model.base import neutralise
from grader_service.store import ids, reviews
from grader_service.store.reviews import Case, CaseView

app = group("Cases that a check leaves to a person: list, show, accept, reject, export.")

_Submission = Annotated[str, typer.Argument(metavar="SUBMISSION", help=ANY_ID)]
_Check = Annotated[str | None, typer.Option("--check", metavar="ID", help="Needed when several of its checks wait.")]
_Reason = Annotated[
    str, typer.Option("-m", "--reason", metavar="TEXT", help="Reason in 3 to 2000 characters, shown to the learner.")
]
_By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decided, if not the person who runs the command.")
]
_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command("list")
def list_cases(
    *,
    lab: Annotated[str | None, typer.Option("--lab", metavar="ID", help="Only this lab.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of cases.")] = 200,
    as_json: _Json = False,
) -> None:
    """List the cases that wait for a person, the oldest first."""
    store = service_store()
    cases = reviews.open_cases(store, lab=lab, limit=limit)
    if as_json:
        typer.echo(json.dumps([_document(case) for case in cases], indent=2))
        return
    if cases:
        rows = (
            (
                case.submission_id,
                case.check_id,
                case.lab,
                neutralise(case.cohort or ""),
                when(case.opened_at),
                f"{case.waited_s / 3600:.1f}",
            )
            for case in cases
        )
        console().print(table_of("submission", "check", "lab", "cohort", "since", "hours", rows=rows))
    count, _ = reviews.waiting(store)
    tell(f"waiting: {count}" if lab is None else f"waiting at {lab}: {len(cases)}, at all labs: {count}")


@app.command("show")
def show(
    submission: _Submission,
    check: Annotated[str | None, typer.Argument(metavar="[CHECK]", help="Needed when several checks wait.")] = None,
    *,
    as_json: _Json = False,
) -> None:
    """Show a case: what the check saw, and what it says of it."""
    store = service_store()
    view = reviews.case_view(store, ids.submission_named(store, submission), check)
    if as_json:
        document = _document(view.case) | {
            "seen": view.seen,
            "answer": None if view.check is None else view.check.model_dump(mode="json"),
            "notes": list(view.notes),
        }
        typer.echo(json.dumps(document, indent=2))
        return
    _show(view)


def _show(view: CaseView) -> None:
    case = view.case
    _print(f"{case.check_id} of submission {case.submission_id}, lab {case.lab}, since {when(case.opened_at)}")
    if case.decision is not None:
        how = "accepted" if case.decision.accepted else "rejected"
        _print(f"{how} by {case.decision.by} at {when(case.decision.at)}: {case.decision.reason}")
    for note in view.notes:
        say(neutralise(note), "red")
    if view.check is not None:
        _print(f"The check says: {view.check.feedback}")
        _print(f"Details: {json.dumps(view.check.details, indent=2)}")
    for name, value in (view.seen or {}).items():
        _print(f"{name}:")
        for item in value if isinstance(value, list) else [value]:
            _print(f"  - {item if isinstance(item, str) else json.dumps(item)}")


@app.command("accept")
def accept(submission: _Submission, *, reason: _Reason, check: _Check = None, by: _By = None) -> None:
    """Decide that the check counts as passed. A judge makes the new verdict within seconds, and sends it."""
    _decide(submission, check, by, reason, accepted=True)


@app.command("reject")
def reject(submission: _Submission, *, reason: _Reason, check: _Check = None, by: _By = None) -> None:
    """Decide that the check counts as failed. A judge makes the new verdict within seconds, and sends it."""
    _decide(submission, check, by, reason, accepted=False)


@app.command("export")
def export(
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Only what was decided since, such as 2026-09-21 or 2026-09-21T14:00Z."
        ),
    ] = None,
) -> None:
    """Write decided cases as training data, a line of JSON each: what the check saw, and `label` good or bad.

    No line names a learner, a submission or who decided; texts of learners are unchanged.
    """
    count = 0
    for example in reviews.labelled(service_store(), moment(since)):
        typer.echo(json.dumps(example))
        count += 1
    tell(f"examples: {count}")


def _decide(submission: str, check: str | None, by: str | None, reason: str, *, accepted: bool) -> None:
    store = service_store()
    # Who gives the command stands there in any case: a name that is typed is nobody's word but his.
    actor = operator() if by is None else f"{operator()} for {' '.join(neutralise(by).split())}"
    case = reviews.decide(
        store, ids.submission_named(store, submission), check, accepted=accepted, reason=reason, actor=actor[:200]
    )
    how = "accepted" if accepted else "rejected"
    _print(f"{case.check_id} of submission {case.submission_id} is {how}; its verdict follows within seconds")


def _document(case: Case) -> dict[str, Any]:
    return asdict(case) | {"opened_at": when(case.opened_at), "waited_s": round(case.waited_s, 1)}


def _print(text: str) -> None:
    say(neutralise(text))
