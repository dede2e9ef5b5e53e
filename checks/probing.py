"""Reads what a probe observed, for a check: validated observations, or the result where there are none."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from checks.api import CheckResult, undecided
from checks.not_carried import no_dali
from checks.stopped import not_reached
from grader_service.model.evidence import Evidence, ProbeRecord, ProbeSite
from grader_service.model.verdict import Outcome, Tier

ModelT = TypeVar("ModelT", bound=BaseModel)


def read_probe(evidence: Evidence, word: str, probe_id: str, model: type[ModelT]) -> ModelT | CheckResult:
    """The observations of one probe as a model of the check's own, or the check's answer without them.

    Args:
        evidence: of the run.
        word: first part of the check's codes, such as `layout`.
        probe_id: name of the probe.
        model: what the probe returns; an observation that does not fit it is no crash of the judge.

    Codes of results: `<word>.no_pipeline`, `.not_carried`, `.graph_failed`, `.timed_out`, `.pod_ended`,
    `.probe_failed` (ours or the author's at the site `graph`), `.unreadable`, and those of `checks.stopped`.
    """
    discovery = evidence.discovery
    if discovery is None:
        return not_reached()
    record = evidence.probe(probe_id)
    if record is None:
        text = f"The run did not observe what this check looks at (probe {probe_id}); this is our fault."
        return undecided(Outcome.ERROR, f"{word}.not_observed", text)
    if record.site is ProbeSite.GRAPH and (result := no_dali(word, discovery)) is not None:
        return result
    if record.status != "ok" or record.observations is None:
        return _without(record, word)
    try:
        return model.model_validate(dict(record.observations))
    except ValidationError as error:
        if record.site is ProbeSite.GRAPH:
            # Only our code and the author's ran there, so a wrong form is no doing of the learner's.
            text = f"The probe {probe_id} returned what its check does not understand; this is our fault."
            return undecided(Outcome.ERROR, f"{word}.probe_failed", text, details={"error": str(error)[:2000]})
        return undecided(
            Outcome.UNVERIFIED,
            f"{word}.unreadable",
            "What the grader's probe read in your process does not have the form that it gives. Leave the grader's own "
            "modules and Python's built-in functions as they are.",
            tier=Tier.CLAIMS,
        )


def no_such_graph(word: str, name: str | None) -> CheckResult:
    """The result when the pipeline that the lab names did not come."""
    named = f"of the name `{name}` " if name else ""
    return undecided(
        Outcome.UNVERIFIED,
        f"{word}.no_such_graph",
        f"No DALI pipeline {named}came that could be run again. Keep the pipeline or its iterator in a variable of "
        "that name, and use DALI's own operators in it.",
        tier=Tier.CLAIMS,
    )


def _without(record: ProbeRecord, word: str) -> CheckResult:
    status = "unreadable" if record.status == "ok" else record.status  # `ok` without observations says nothing
    details = {"probe": record.id, "status": record.status, "text": record.text}
    if status == "no_graph":
        text = f"Your DALI pipeline could not be run again by the grader. {record.text}"
        return undecided(Outcome.UNVERIFIED, f"{word}.not_carried", text, tier=Tier.CLAIMS, details=details)
    if status == "graph_failed":
        # As in the clean room: what could not be observed is not known to be wrong.
        text = f"Your DALI pipeline stopped on the grader's own images: {record.text}"
        return undecided(Outcome.UNVERIFIED, f"{word}.graph_failed", text, tier=Tier.CLAIMS, details=details)
    if record.site is ProbeSite.GRAPH and status in ("raised", "unreadable"):
        text = "The grader's own probe failed, so this was not looked at; this is our fault."
        return undecided(Outcome.ERROR, f"{word}.probe_failed", text, details=details)
    texts = {
        "timed_out": "Looking at what your code left behind took too long, and was stopped.",
        "pod_ended": f"The process ended while the grader looked at what your code left behind. {record.text}",
        "raised": f"What your code left behind could not be looked at: {record.text}",
        "unreadable": "What the grader's probe read in your process could not be understood.",
    }
    codes = {"raised": "probe_failed"}
    return undecided(
        Outcome.UNVERIFIED,
        f"{word}.{codes.get(status, status)}",
        texts[status].strip(),
        tier=Tier.CLAIMS,
        details=details,
    )
