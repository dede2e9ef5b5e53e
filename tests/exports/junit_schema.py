"""The part of JUnit XML that both Jenkins and Maven Surefire publish a schema for, as a table, and a check against it.

Jenkins: `junit-10.xsd` of its xUnit plugin, whose root is `testsuites`. Surefire: `surefire-test-report.xsd`, whose
root is one `testsuite`. A document that keeps to this table is valid by both, each suite on its own in Surefire's case.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

_TIME = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")
_COUNT = re.compile(r"[0-9]{1,9}")
_TYPES = {"time": _TIME, "tests": _COUNT, "failures": _COUNT, "errors": _COUNT, "skipped": _COUNT}


@dataclass(frozen=True)
class Rule:
    """What one element may hold."""

    required: frozenset[str]
    """Attributes that either schema requires."""
    optional: frozenset[str]
    """Further attributes that both know."""
    children: tuple[str, ...]
    """Names in the order in which they must stand."""
    text: bool
    """Whether it holds text of its own."""


def _rule(required: str, optional: str = "", children: str = "", *, text: bool = False) -> Rule:
    return Rule(frozenset(required.split()), frozenset(optional.split()), tuple(children.split()), text)


RULES: Mapping[str, Rule] = {
    "testsuites": _rule("", "name time tests failures errors", "testsuite"),
    "testsuite": _rule("name tests failures errors skipped", "time group", "properties testcase"),
    "properties": _rule("", "", "property"),
    "property": _rule("name value"),
    "testcase": _rule("name time", "classname group", "failure skipped error system-out system-err"),
    "failure": _rule("type", "message", text=True),
    "skipped": _rule("", "message", text=True),
    "error": _rule("type", "message", text=True),
    "system-out": _rule("", text=True),
    "system-err": _rule("", text=True),
}
_ONCE = frozenset({"properties", "failure", "skipped", "error", "system-out", "system-err"})


def violations(root: Element) -> list[str]:
    """What in a document is not of the table, or counts wrongly; empty for a valid one."""
    if root.tag != "testsuites":
        return [f"the root is {root.tag}; expected testsuites"]
    return [*_of_element(root), *_of_counts(root)]


def _of_element(element: Element) -> list[str]:
    rule = RULES[element.tag]
    found = [f"{element.tag} lacks the attribute {name}" for name in sorted(rule.required.difference(element.keys()))]
    for name, value in element.items():
        if name not in rule.required | rule.optional:
            found.append(f"{element.tag} has the attribute {name}, which is unknown")
        elif name in _TYPES and not _TYPES[name].fullmatch(value):
            found.append(f"{name} of {element.tag} is {value!r}, not a number of the expected form")
    if not rule.text and (element.text or "").strip():
        found.append(f"{element.tag} holds text")
    names = [child.tag for child in element]
    unknown = [name for name in names if name not in rule.children]
    if unknown:
        return [*found, f"{element.tag} holds {unknown[0]}"]
    found += _of_order(element.tag, names, rule)
    for child in element:
        if (child.tail or "").strip():
            found.append(f"{element.tag} holds text after {child.tag}")
        found += _of_element(child)
    return found


def _of_order(tag: str, names: Sequence[str], rule: Rule) -> list[str]:
    found = [f"{tag} holds {name} more than once" for name in sorted(_ONCE) if names.count(name) > 1]
    if names != sorted(names, key=rule.children.index):
        found.append(f"{tag} holds its elements in another order than {', '.join(rule.children)}")
    return found


def _of_counts(root: Element) -> list[str]:
    found = []
    for suite in root.iter("testsuite"):
        cases = suite.findall("testcase")
        counts = {"tests": len(cases)} | {
            name: sum(case.find(tag) is not None for case in cases)
            for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
        }
        found += [
            f"{name} of suite {suite.get('name')} is {suite.get(name)}, its elements say {count}"
            for name, count in counts.items()
            if suite.get(name) != str(count)
        ]
        # Readers such as GitLab's take two cases of the same class and name for one.
        if len({(case.get("classname"), case.get("name")) for case in cases}) < len(cases):
            found.append(f"suite {suite.get('name')} has two cases of one name")
    for name in ("tests", "failures", "errors"):
        total = sum(int(suite.get(name) or 0) for suite in root.iter("testsuite"))
        if root.get(name) not in {None, str(total)}:
            found.append(f"{name} of testsuites is {root.get(name)}, its suites say {total}")
    return found
