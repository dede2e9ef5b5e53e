"""Renders a cohort, or what a batch changes, as one file: opened from a disk it asks nobody for anything.

The policy of a page allows its own style and script by their hash and nothing else, so that escaping is not the only
guard against what learners wrote. Without its script a page has everything but the table.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from markupsafe import Markup

from grader_service.model.diff import COMPARED, Diff, Kind
from grader_service.model.regrade import Change
from grader_service.model.verdict_summary import CohortEntry
from grader_service.regrade.filters import kind_of
from grader_service.report.cohort.batch_facts import batch_facts
from grader_service.report.cohort.choices import Choices
from grader_service.report.cohort.cohort_facts import cohort_facts
from grader_service.report.cohort.columns import ChangeColumns, CohortColumns, Feedback
from grader_service.report.cohort.embedded_data import packed
from grader_service.report.cohort.environment import environment
from grader_service.report.cohort.speed import Speeds
from grader_service.report.cohort.tally import Tally
from grader_service.report.cohort.wording import said


def cohort_page(
    entries: Iterable[CohortEntry],
    *,
    title: str,
    generated_at: float | None = None,
    feedback: Feedback | None = None,
) -> str:
    """The page of a cohort; the same text whenever the same entries are given.

    Args:
        entries: verdicts in force, ordered by submission id; read once, one at a time.
        title: what the cohort is called.
        generated_at: seconds since 1970; left out of the page when null.
        feedback: texts for learners, which verdicts in few words lack; see `columns.Feedback`.
    """
    tally, columns = Tally(), CohortColumns(feedback)
    for entry in entries:
        tally.add(entry)
        columns.add(entry)
    return _render("cohort.html.j2", columns.as_data() | said(), cohort_facts(tally, title, generated_at))


class BatchRows:
    """The submissions of a batch's page, taken one at a time; what is kept of one is what the page shows."""

    def __init__(self) -> None:
        self._columns, self._choices, self._speeds = ChangeColumns(), Choices(), Speeds()

    def add(self, kind: Kind, change: Change) -> None:
        """The next one, by submission id."""
        self._columns.add(change, kind.value)
        self._choices.add(change)
        if kind in COMPARED:
            self._speeds.add(change)

    def page(self, diff: Diff) -> str:
        """The page; `diff` has the figures of the same submissions."""
        return _render(
            "batch.html.j2", self._columns.as_data() | said(), batch_facts(diff, self._choices, self._speeds)
        )


def batch_page(diff: Diff, changes: Iterable[Change]) -> str:
    """The page of what a batch changes; `changes` are those of `diff`, by submission id, and are read once."""
    rows = BatchRows()
    for change in changes:
        rows.add(kind_of(change), change)
    return rows.page(diff)


def _render(template: str, data: object, context: Mapping[str, object]) -> str:
    style, script = _assets()
    page = {"style": style, "script": script, "style_hash": _hash(style), "script_hash": _hash(script)}
    return environment().get_template(template).render(page=page | {"data": packed(data)}, **context)


@cache
def _assets() -> tuple[Markup, Markup]:
    """Our own style and script, which hold nothing that came from outside."""
    report = files("grader_service.report")
    style = (report / "templates" / "report.css").read_text() + (
        report / "cohort" / "templates" / "cohort.css"
    ).read_text()
    return Markup(style), Markup((report / "cohort" / "page.js").read_text())  # noqa: S704 - files of this package


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
