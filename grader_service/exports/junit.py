"""JUnit XML: one suite for each verdict, one case for each check, and one for a run that did not come to its end.

A failure is the learner's to mend, an error is the grader's or the platform's, and what was not decided, or not reached
because the run ended before, is skipped.
"""

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from grader_service.exports.grades import grade_of, seconds, shown, trace
from grader_service.exports.parts import Piece, as_text, cut, of_check, of_run
from grader_service.exports.text import one_line, plain
from grader_service.model.feedback import MAX_SENTENCE, Feedback
from grader_service.model.run_report import RunReport
from grader_service.model.verdict import Status, Verdict

_KINDS = {"passed": None, "failed": "failure", "rejected": "failure", "error": "error"}
"""By outcome or status; every other one was not decided, and is `skipped`."""
_NOT_OF_THE_LEARNER = ("message.", "queue.", "artifact.", "submission.conflict", "submission.cancelled")
"""Codes of rejections that are the platform's or the staff's matter."""
_MOST_MESSAGE = MAX_SENTENCE
_MOST_TEXT = 16384


def junit(verdicts: Sequence[Verdict]) -> str:
    """One document on all of these verdicts, in their order."""
    root = Element("testsuites", {"name": "grader"})
    suites = [_suite(root, verdict) for verdict in verdicts]
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _suite(root: Element, verdict: Verdict) -> Element:
    suite = SubElement(root, "testsuite", {"name": f"{verdict.lab} {verdict.submission_id}"})
    properties = SubElement(suite, "properties")
    for name, value in _properties(verdict).items():
        SubElement(properties, "property", {"name": name, "value": value})
    kinds = []
    names: dict[str, int] = {}
    run = verdict.stopped
    if run is not None:
        kinds.append(_run_case(suite, verdict, _unused(names, "run"), run))
    for check in shown(verdict):
        kind = _KINDS.get(check.outcome.value, "skipped")
        _case(suite, verdict, _unused(names, f"{check.step}/{check.id}"), kind, check.code, of_check(check.told))
        kinds.append(kind)
    overall = _overall(verdict)
    # A status that no check shows would be lost: it becomes a case of its own.
    if not kinds or overall not in {None, *kinds}:
        told = of_check(Feedback.of(verdict.feedback))
        _case(suite, verdict, _unused(names, "submission"), overall, verdict.code, told)
        kinds.append(overall)
    suite.set("tests", str(len(kinds)))
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(kinds.count(kind)))
    took = seconds(verdict)
    if took is not None:
        suite.set("time", f"{took:.3f}")
    return suite


def _run_case(suite: Element, verdict: Verdict, name: str, run: RunReport) -> str | None:
    """A case of a run that did not come to its end; no worse than the verdict, which may have passed before that."""
    kind = {Status.PASSED: None, Status.FAILED: "failure"}.get(verdict.status, "skipped")
    told = [*of_run(run), Piece("lines", run.traceback)]
    case = _case(suite, verdict, name, kind, run.code, told)
    printed = cut([*(told if kind is None else ()), Piece("lines", run.output_tail)], _MOST_TEXT)
    if printed:
        SubElement(case, "system-out").text = as_text(printed)
    return kind


def _overall(verdict: Verdict) -> str | None:
    if verdict.status is Status.REJECTED and verdict.code.startswith(_NOT_OF_THE_LEARNER):
        return "error"
    return _KINDS.get(verdict.status.value, "skipped")


def _properties(verdict: Verdict) -> dict[str, str]:
    """The ids, and the points where there is a grade; a verdict without one has no property `score`."""
    known = trace(verdict).model_dump(exclude_none=True)
    known["graded"] = "true" if known["graded"] else "false"
    grade = grade_of(verdict)
    if grade is not None:
        known |= {"score": f"{grade.score:.15g}", "max_score": f"{grade.max_score:.15g}"}
    return {name: plain(str(value)) for name, value in known.items()}


def _case(suite: Element, verdict: Verdict, name: str, kind: str | None, code: str, told: Iterable[Piece]) -> Element:
    """A case; its message is the outcome, its text the rest, or the outcome again where that is all.

    A passed one has no text of its own but advice, as output.
    """
    # Jenkins takes what stands before the last dot for a package: the submission must hold none.
    class_name = f"{verdict.lab}.{verdict.submission_id.replace('.', '%2E')}"
    # A check judges stored evidence in next to no time; what the run took stands on the suite.
    where = {"classname": class_name, "name": name, "time": "0.000"}
    case = SubElement(suite, "testcase", where)
    if kind is None:
        if advice := cut((piece for piece in told if piece.kind == "advice"), _MOST_TEXT):
            SubElement(case, "system-out").text = as_text(advice)
        return case
    outcome, *rest = cut(told, _MOST_TEXT) or [Piece("outcome", "")]
    message = one_line(outcome.text, _MOST_MESSAGE)
    # Surefire's `skipped` has no type.
    attributes = {"message": f"{code}: {message}"} if kind == "skipped" else {"type": code, "message": message}
    SubElement(case, kind, attributes).text = as_text(rest or [outcome])
    return case


def _unused(names: dict[str, int], name: str) -> str:
    # No id holds a `#`, so that a numbered name is nobody else's.
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}#{names[name]}"
