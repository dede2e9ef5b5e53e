"""Verdicts as columns for the table of a page: what is said often is said once."""

from collections.abc import Mapping

from grader_service.model.regrade import Change
from grader_service.model.verdict_summary import CheckSummary, CohortEntry, VerdictSummary
from grader_service.report.cohort.embedded_data import Words, digits, safe
from grader_service.report.cohort.wording import ARMS
from grader_service.report.words import title

MOST_FEEDBACK = 4_000_000
"""Characters of feedback on one page; the texts of later submissions are left to their verdicts."""
_MOST_TEXT = 1200
_NO_CHECK = -1

Feedback = Mapping[str, Mapping[str, str]]
"""Submission id to the texts for its learner: by `step/check`, and that of the whole verdict under an empty name.

Looked up while each entry is read, so that it may hold no more than those of its neighbours.
"""

_Result = tuple[str, str, float | None, float, str | None, str]
_Steps = tuple[tuple[str, str, float | None, float], ...]


def check_name(check: CheckSummary) -> str:
    """A check's name on a page, unique within a verdict: `step/check`."""
    return f"{check.step}/{check.id}"


class Vocabulary:
    """What the columns of a page share."""

    def __init__(self) -> None:
        self.checks: Words[str] = Words()
        self.results: Words[_Result] = Words()
        self.steps: Words[_Steps] = Words()
        self.texts: Words[str] = Words()

    def as_data(self) -> dict[str, object]:
        """For the embedded data."""
        named = {part for name in self.checks.values for part in name.split("/")}
        named.update(step for steps in self.steps.values for step, *_ in steps)
        return {
            "titles": {name: title(name) for name in sorted(named)} | ARMS,
            "checks": self.checks.values,
            "results": self.results.values,
            "steps": self.steps.values,
            "texts": self.texts.values,
        }


class VerdictColumns:
    """One verdict per row; a row without one has -1 as its status."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._rows = 0
        self._words: dict[str, list[int]] = {
            name: [] for name in ("status", "code", "mode", "lab_version", "image_digest", "gpu", "steps")
        }
        self._numbers: dict[str, list[float | None]] = {
            name: [] for name in ("score", "max_score", "created_at", "run_s", "gpu_held_s", "ratio", "low", "high")
        }
        self._ids: dict[str, list[str | None]] = {"verdict_id": [], "run_id": []}
        self._checks: dict[int, list[int]] = {}
        self._rates: dict[str, list[tuple[float | None, ...] | None]] = {}

    def add(self, summary: VerdictSummary | None) -> None:
        """The next row."""
        place = self._vocabulary.texts.place
        words, numbers = self._words, self._numbers
        absent = summary is None
        words["status"].append(-1 if summary is None else place(summary.status.value))
        words["code"].append(-1 if summary is None else place(summary.code))
        words["mode"].append(-1 if summary is None else place(summary.mode.value))
        for name in ("lab_version", "image_digest", "gpu"):
            words[name].append(-1 if absent else place(safe(getattr(summary, name))))
        words["steps"].append(-1 if summary is None else self._vocabulary.steps.place(_steps(summary)))
        for name in ("score", "max_score", "run_s", "gpu_held_s"):
            numbers[name].append(None if absent else digits(getattr(summary, name)))
        numbers["created_at"].append(None if summary is None else round(summary.created_at))
        ratio = None if summary is None else summary.ratio
        for name in ("ratio", "low", "high"):
            numbers[name].append(None if ratio is None else digits(getattr(ratio, name)))
        for name, column in self._ids.items():
            column.append(None if absent else getattr(summary, name))
        if summary is not None:
            self._add_lists(summary)
        self._rows += 1

    def as_data(self) -> dict[str, object]:
        """For the embedded data."""
        for places in self._checks.values():
            places.extend([_NO_CHECK] * (self._rows - len(places)))
        for rates in self._rates.values():
            rates.extend([None] * (self._rows - len(rates)))
        return {**self._words, **self._numbers, **self._ids, "checks": self._checks, "rates": self._rates}

    def _add_lists(self, summary: VerdictSummary) -> None:
        for check in summary.checks:
            places = self._checks.setdefault(self._vocabulary.checks.place(check_name(check)), [])
            # Columns start at the first row that has the check; of two of one name the last one stands.
            places.extend([_NO_CHECK] * (self._rows + 1 - len(places)))
            places[self._rows] = self._vocabulary.results.place(_result(check))
        for arm, rate in summary.rates.items():
            rates = self._rates.setdefault(str(safe(arm, 80)), [])
            rates.extend([None] * (self._rows + 1 - len(rates)))
            rates[self._rows] = tuple(digits(value, 4) for value in (rate.median, rate.low, rate.high))


class SubmissionColumns:
    """What belongs to the submission, whatever verdict it has."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._texts: dict[str, list[str | None]] = {"id": [], "learner": []}
        self._words: dict[str, list[int]] = {"lab": [], "cohort": []}

    def add(self, summary: VerdictSummary) -> None:
        """The next row."""
        self._texts["id"].append(summary.submission_id)
        self._texts["learner"].append(safe(summary.learner))
        self._words["lab"].append(self._vocabulary.texts.place(summary.lab))
        self._words["cohort"].append(self._vocabulary.texts.place(safe(summary.cohort)))

    def as_data(self) -> dict[str, object]:
        """For the embedded data."""
        return {**self._texts, **self._words}


class CohortColumns:
    """The table of a cohort: one submission with its verdict per row."""

    def __init__(self, feedback: Feedback | None = None) -> None:
        self._vocabulary = Vocabulary()
        self._submissions = SubmissionColumns(self._vocabulary)
        self._verdicts = VerdictColumns(self._vocabulary)
        self._given = {} if feedback is None else feedback
        self._files: list[str | None] = []
        self._received: list[int] = []
        self._submitted: list[int | None] = []
        self._feedback: dict[int, list[tuple[str, int]]] = {}
        self._left = MOST_FEEDBACK

    def add(self, entry: CohortEntry) -> None:
        """The next row."""
        self._submissions.add(entry.summary)
        self._verdicts.add(entry.summary)
        given = self._given.get(entry.summary.submission_id)
        if given and self._left > 0:
            self._feedback[len(self._files)] = self._said(given)
        self._files.append(safe(entry.filename))
        self._received.append(round(entry.received_at))
        self._submitted.append(None if entry.submitted_at is None else round(entry.submitted_at))

    def as_data(self) -> dict[str, object]:
        """For the embedded data."""
        rows = {
            **self._submissions.as_data(),
            "filename": self._files,
            "received_at": self._received,
            "submitted_at": self._submitted,
            "feedback": self._feedback,
        }
        return {"rows": rows, "sides": [self._verdicts.as_data()], **self._vocabulary.as_data()}

    def _said(self, given: Mapping[str, str]) -> list[tuple[str, int]]:
        said = []
        for name, text in given.items():
            shown = str(safe(text, _MOST_TEXT))
            self._left -= len(shown)
            said.append((str(safe(name)), self._vocabulary.texts.place(shown)))
        return said


class ChangeColumns:
    """The table of a batch: one submission with the verdict from before and the new one per row."""

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._submissions = SubmissionColumns(self._vocabulary)
        self._old = VerdictColumns(self._vocabulary)
        self._new = VerdictColumns(self._vocabulary)
        self._words: dict[str, list[int]] = {name: [] for name in ("kind", "level", "reason", "state", "error")}
        self._outdated: list[int] = []
        self._newer: list[int] = []
        self._repeats: dict[int, list[tuple[str, float | None]]] = {}

    def add(self, change: Change, kind: str) -> None:
        """The next row; `kind` is the group that the page counts it in."""
        place = self._vocabulary.texts.place
        self._submissions.add(change.old)
        self._old.add(change.old)
        self._new.add(change.new)
        if change.repeats:
            self._repeats[len(self._outdated)] = [(one.status.value, digits(one.score)) for one in change.repeats]
        for name, text in (
            ("kind", kind),
            ("level", change.level.value),
            ("reason", change.reason),
            ("state", change.state.value),
            ("error", safe(change.error, _MOST_TEXT) or None),
        ):
            self._words[name].append(place(text))
        self._outdated.append(int(change.outdated))
        self._newer.append(change.newer)

    def as_data(self) -> dict[str, object]:
        """For the embedded data."""
        rows = {
            **self._submissions.as_data(),
            **self._words,
            "outdated": self._outdated,
            "newer": self._newer,
            "repeats": self._repeats,
        }
        return {"rows": rows, "sides": [self._old.as_data(), self._new.as_data()], **self._vocabulary.as_data()}


def _result(check: CheckSummary) -> _Result:
    tier = None if check.tier is None else check.tier.value
    points = digits(check.score)
    return (check.counted.value, check.code, points, check.max_score, tier, str(safe(check.version)))


def _steps(summary: VerdictSummary) -> _Steps:
    return tuple((step.id, step.outcome.value, digits(step.score), step.max_score) for step in summary.steps)
