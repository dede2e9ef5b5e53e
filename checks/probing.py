"""Reads what a probe observed, for a check: validated observations, or the result where there are none."""

import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from checks.diagnosis import message
from checks.not_carried import first_words, no_dali
from checks.results import Result, our_fault, undecided
from checks.stopped import not_reached
from grader_service.model.discovery import LearnerException
from grader_service.model.evidence import Evidence, ProbeRecord, ProbeSite
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.place import Place
from grader_service.model.verdict import Outcome, Tier

ModelT = TypeVar("ModelT", bound=BaseModel)

_ASSERTION = re.compile(r'^\[[^\]\n]{1,300}\]\s*(?:Assert on "[^"\n]{1,300}" failed:?\s*)?')
"""DALI's own file and condition, before the words that are meant for people."""
_UNREADABLE = "Leave the grader's own modules and Python's built-in functions as they are."
_WITHOUT = {
    "no_graph": (
        "not_carried",
        "The grader could not run your DALI pipeline again",
        "Build it with @pipeline_def from DALI's own operators, without fn.python_function and fn.external_source.",
    ),
    "graph_failed": (
        "graph_failed",
        "Your DALI pipeline stopped on the grader's own images",
        "Check that no crop or slice is larger than an image: the grader's images have other sizes than yours.",
    ),
    "timed_out": (
        "timed_out",
        "The grader could not look at this part of your code in time",
        "Hand it in again; if this stays so, make that part of your code faster.",
    ),
    "pod_ended": (
        "pod_ended",
        "The process ended while the grader looked at this part of your code",
        "Use less memory, and leave out what ends the process, such as os._exit.",
    ),
    "raised": (
        "probe_failed",
        "The grader could not look at this part of your code",
        "Use what this check asks for once more in your last line, and see what is raised.",
    ),
    "unreadable": ("unreadable", "What the grader read in your process has no usable form", _UNREADABLE),
}
"""Status of a probe → last word of the code, what is so, and what to do."""


def read_probe(evidence: Evidence, probe_id: str, model: type[ModelT], site: ProbeSite) -> ModelT | Result:
    """The observations of one probe as a model of the check's own, or the check's answer without them.

    Args:
        evidence: of the run.
        probe_id: name of the probe.
        model: what the probe returns; an observation that does not fit it is no crash of the judge.
        site: where it has to have run; a claim is never taken for a fact.

    Codes of results: `run.not_reached` where the code stopped before, `no_pipeline`, `not_carried`, `graph_failed`,
    `timed_out`, `pod_ended`, `probe_failed` (ours or the author's at the site `graph`), `unreadable`, `not_observed`.
    """
    discovery = evidence.discovery
    if discovery is None:
        return not_reached()
    record = evidence.probe(probe_id)
    if record is None and discovery.left_nothing:
        return not_reached(needs_gpu=bool(discovery.needs_gpu))  # no probe is sent where there is nothing to look at
    if record is None or record.site is not site:
        feedback = our_fault(f"The grader did not look at what this check asks for (probe {probe_id}).")
        return undecided(Outcome.ERROR, "not_observed", feedback)
    if site is ProbeSite.GRAPH and (result := no_dali(discovery)) is not None:
        return result
    if record.status != "ok" or record.observations is None:
        return _without(record)
    try:
        return model.model_validate(dict(record.observations))
    except ValidationError as error:
        if site is ProbeSite.GRAPH:
            # Only our code and the author's ran there, so a wrong form is no doing of the learner's.
            feedback = our_fault(f"The check does not understand what its probe {probe_id} returned.")
            return undecided(Outcome.ERROR, "probe_failed", feedback, details={"error": str(error)[:2000]})
        return undecided(
            Outcome.UNVERIFIED,
            "unreadable",
            Feedback(outcome=f"{_WITHOUT['unreadable'][1]}, so nothing is counted.", next=NextStep(text=_UNREADABLE)),
            tier=Tier.CLAIMS,
        )


def no_such_graph(name: str | None) -> Result:
    """The result when the pipeline that the lab names did not come."""
    return undecided(
        Outcome.UNVERIFIED,
        "no_such_graph",
        Feedback(
            outcome=f"The grader found no DALI pipeline{f' `{name}`' if name else ''} that it can run again, so "
            "nothing is counted.",
            next=NextStep(
                text="Build it from DALI's own operators, and keep its iterator in a variable:",
                code=f'{name or "dali_iter"} = DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader")',
            ),
        ),
        tier=Tier.CLAIMS,
    )


def said(text: str) -> str:
    """What DALI, a probe or the learner's code said, as one sentence of at most 20 words; empty if it said nothing."""
    told = first_words(text[:1000], 20)
    return f"{told[:1].upper()}{told[1:]}{'' if told.endswith(('.', '…', '!', '?')) or not told else '.'}"


def _without(record: ProbeRecord) -> Result:
    status = "unreadable" if record.status == "ok" else record.status  # `ok` without observations says nothing
    details = {"probe": record.id, "status": record.status, "text": record.text}
    if record.site is ProbeSite.GRAPH and status in ("raised", "unreadable"):
        feedback = our_fault("The grader's own probe failed, so this was not looked at.")
        return undecided(Outcome.ERROR, "probe_failed", feedback, details=details)
    last, outcome, action = _WITHOUT[status]
    seen, place = _of_graph(record.text) if status == "graph_failed" else (said(record.text), None)
    feedback = Feedback(
        outcome=f"{outcome}, so nothing is counted.", seen=seen, next=NextStep(text=action, place=place)
    )
    # As in the clean room: what could not be observed is not known to be wrong.
    return undecided(Outcome.UNVERIFIED, last, feedback, tier=Tier.CLAIMS, details=details)


def _of_graph(text: str) -> tuple[str, Place | None]:
    """What DALI says of a graph that stopped, without its report around it, and the learner's line."""
    report = message.read(LearnerException(type="RuntimeError", message=text))
    told = said(_ASSERTION.sub("", report.texts[0]))
    return (f"`{report.operator.removeprefix('nvidia.dali.')}`: {told}" if report.operator else told), report.place
