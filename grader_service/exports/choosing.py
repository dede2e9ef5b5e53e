"""Which verdicts are exported, in which order and under which names; pure."""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime

from grader_service.exports.reading import Found, Refused
from grader_service.model.verdict import Mode, Status, Verdict
from grader_service.report.formats import utc

_MOST_NAME = 200


def held_back(found: Found, *, allow_rehearsal: bool, max_score: float | None) -> Refused | None:
    """Why a verdict must not become somebody's grade; None when it may.

    Args:
        found: the verdict.
        allow_rehearsal: whether a rehearsal may count as a grade.
        max_score: what the whole lab is worth; a verdict on fewer of its steps would look like all of it.
    """
    verdict = found.verdict
    if verdict.mode is Mode.PREFLIGHT:
        problem = "a preflight is no grade: nothing was measured or judged. Have the submission graded."
        return Refused(found.source, problem, held_back=True)
    if verdict.mode is Mode.REHEARSAL and not allow_rehearsal:
        problem = "a rehearsal is no grade. Grade it on a GPU, or give --allow-rehearsal to export it as it is."
        return Refused(found.source, problem, held_back=True)
    if max_score is not None and verdict.max_score is not None and verdict.max_score != max_score:
        problem = (
            f"the verdict is on {verdict.max_score:g} points, expected {max_score:g}. "
            "It covers some of the lab's steps only: grade all of them."
        )
        return Refused(found.source, problem, held_back=True)
    return None


def newest(found: Iterable[Found]) -> list[Verdict]:
    """One verdict for each submission, in the order of their ids: the newest.

    A rehearsal never takes the place of an official run, nor a failure of the grader that of what was found before.
    """
    chosen: dict[str, Verdict] = {}
    for item in found:
        rival = chosen.get(item.verdict.submission_id)
        if rival is None or _rank(item.verdict) > _rank(rival):
            chosen[item.verdict.submission_id] = item.verdict
    return [chosen[submission_id] for submission_id in sorted(chosen)]


def file_names(submission_ids: Sequence[str], suffix: str) -> dict[str, str]:
    """A file name for each submission id, different for different ids on any file system.

    Letters, digits, `_`, `-` and dots between them stay; a colon, and a dot at either end, become `%3A` and `%2E`.
    An id that differs from an earlier one in case alone gets eight digits of its SHA-256 as well, and so does one whose
    name would be longer than file systems take; that name is cut.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for submission_id in sorted(submission_ids):
        safe = submission_id.replace(":", "%3A")
        if safe.startswith("."):
            safe = f"%2E{safe[1:]}"
        if safe.endswith("."):
            safe = f"{safe[:-1]}%2E"
        if safe.casefold() in taken or len(safe) > _MOST_NAME:
            safe = f"{safe[:_MOST_NAME]}~{hashlib.sha256(submission_id.encode()).hexdigest()[:8]}"
        taken.add(safe.casefold())
        names[submission_id] = safe + suffix
    return names


def _rank(verdict: Verdict) -> tuple[bool, bool, datetime, str]:
    made = utc(verdict.created_at)
    return verdict.mode is Mode.OFFICIAL, verdict.status is not Status.ERROR, made, verdict.verdict_id
