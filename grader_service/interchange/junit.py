"""JUnit XML: one suite for each verdict, one case for each check.

A failure is the learner's to mend, an error is the grader's or the platform's, and what was not decided is skipped.
"""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from grader_service.errors import GraderError
from grader_service.interchange.junit_schema import violations
from grader_service.interchange.standing import grade_of, seconds, shown, trace
from grader_service.interchange.text import one_line, plain
from grader_service.model.verdict import Outcome, Status, Verdict

_OF_OUTCOME = {
    Outcome.PASSED: None,
    Outcome.FAILED: "failure",
    Outcome.INCONCLUSIVE: "skipped",
    Outcome.UNVERIFIED: "skipped",
    Outcome.SKIPPED: "skipped",
    Outcome.ERROR: "error",
}
_OF_STATUS = {
    Status.PASSED: None,
    Status.FAILED: "failure",
    Status.INCONCLUSIVE: "skipped",
    Status.UNVERIFIED: "skipped",
    Status.REJECTED: "failure",
    Status.ERROR: "error",
}
_NOT_OF_THE_LEARNER = ("message.", "queue.", "artifact.", "submission.conflict", "submission.cancelled")
"""Codes of rejections that are the platform's or the staff's matter."""
_MOST_MESSAGE = 200


def junit(verdicts: Sequence[Verdict]) -> str:
    """One document on all of these verdicts, in their order.

    Raises:
        GraderError: the document is not valid by our table of the format, which is a defect of ours.
    """
    root = Element("testsuites", {"name": "grader"})
    suites = [_suite(root, verdict) for verdict in verdicts]
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    problems = violations(root)
    if problems:
        raise GraderError(f"the JUnit document would not be valid: {'; '.join(problems[:3])}; please report this")
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _suite(root: Element, verdict: Verdict) -> Element:
    suite = SubElement(root, "testsuite", {"name": f"{verdict.lab} {verdict.submission_id}"})
    properties = SubElement(suite, "properties")
    for name, value in _properties(verdict).items():
        SubElement(properties, "property", {"name": name, "value": value})
    kinds = []
    names: dict[str, int] = {}
    for check in shown(verdict):
        kind = _OF_OUTCOME[check.outcome]
        _case(suite, verdict, _unused(names, f"{check.step}/{check.id}"), kind, check.code, check.feedback)
        kinds.append(kind)
    overall = _overall(verdict)
    # A status that no check shows would be lost: it becomes a case of its own.
    if not kinds or overall not in {None, *kinds}:
        _case(suite, verdict, _unused(names, "submission"), overall, verdict.code, verdict.feedback)
        kinds.append(overall)
    suite.set("tests", str(len(kinds)))
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(kinds.count(kind)))
    took = seconds(verdict)
    if took is not None:
        suite.set("time", f"{took:.3f}")
    return suite


def _overall(verdict: Verdict) -> str | None:
    if verdict.status is Status.REJECTED and verdict.code.startswith(_NOT_OF_THE_LEARNER):
        return "error"
    return _OF_STATUS[verdict.status]


def _properties(verdict: Verdict) -> dict[str, str]:
    """The ids, and the points where there is a grade; a verdict without one has no property `score`."""
    known = trace(verdict).model_dump(exclude_none=True)
    known["graded"] = "true" if known["graded"] else "false"
    grade = grade_of(verdict)
    if grade is not None:
        known |= {"score": f"{grade.score:.15g}", "max_score": f"{grade.max_score:.15g}"}
    return {name: plain(str(value)) for name, value in known.items()}


def _case(suite: Element, verdict: Verdict, name: str, kind: str | None, code: str, feedback: str) -> None:
    # Jenkins takes what stands before the last dot for a package: the submission must hold none.
    class_name = f"{verdict.lab}.{verdict.submission_id.replace('.', '%2E')}"
    # A check judges stored evidence in next to no time; what the run took stands on the suite.
    where = {"classname": class_name, "name": name, "time": "0.000"}
    case = SubElement(suite, "testcase", where)
    if kind is None:
        return
    shown = f"{code}: {one_line(feedback, _MOST_MESSAGE)}"
    # Surefire's `skipped` has no type.
    attributes = {"message": shown} if kind == "skipped" else {"type": code, "message": shown}
    SubElement(case, kind, attributes).text = plain(feedback)


def _unused(names: dict[str, int], name: str) -> str:
    # No id holds a `#`, so that a numbered name is nobody else's.
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}#{names[name]}"
