"""What learners were told, read beside the verdicts in few words, some hundred documents at a time."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import BaseModel, ValidationError

from grader_service.exports.cohorts.bundle import Documents
from grader_service.exports.cohorts.cells import chunks
from grader_service.model.verdict_summary import CohortEntry

Texts = Mapping[str, Mapping[str, str]]
"""Submission id to texts: by `step/check`, and that of the whole verdict under an empty name."""
_AT_ONCE = 200


class _Check(BaseModel):
    """The part of a check that is shown."""

    step: str
    id: str
    feedback: str


class _Verdict(BaseModel):
    """The part of a document that is shown; the rest is not even looked at."""

    feedback: str
    checks: tuple[_Check, ...] = ()


def with_texts(entries: Iterable[CohortEntry], documents: Documents) -> tuple[Iterator[CohortEntry], Texts]:
    """The entries again, and the texts of those that were just given: ask for each entry's before the next one.

    A submission whose document is not there, or is none, has no texts.
    """
    texts: dict[str, Mapping[str, str]] = {}

    def read() -> Iterator[Sequence[CohortEntry]]:
        for some in chunks(entries, _AT_ONCE):
            found = documents([entry.summary.verdict_id for entry in some])
            texts.clear()
            for entry in some:
                document = found.get(entry.summary.verdict_id)
                if document is not None and (said := _said(document)):
                    texts[entry.summary.submission_id] = said
            yield some

    rest = read()
    first = next(rest, ())
    return itertools.chain(first, itertools.chain.from_iterable(rest)), texts


def _said(document: str) -> Mapping[str, str]:
    try:
        verdict = _Verdict.model_validate_json(document)
    except ValidationError:
        return {}
    return {"": verdict.feedback} | {f"{check.step}/{check.id}": check.feedback for check in verdict.checks}
