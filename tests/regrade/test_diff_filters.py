"""Which submissions a filter chooses, and what a diff counts of them."""

import pytest

from grader_service.model.diff import Filter, Kind
from grader_service.regrade.filters import rows_of
from tests.regrade.makers import LOST, NOISY, a_change, a_check, a_diff, a_summary, pending

THIN = {"reflections": "failed"}
CHANGES = (
    a_change("autumn:1", {}, LOST),
    a_change("autumn:2", THIN, THIN),
    a_change("autumn:3", THIN, LOST | THIN),
    a_change("spring:4", LOST, {}),
    a_change("spring:5", {}, NOISY),
    a_change("spring:6", {}, LOST, outdated=True),
    pending("spring:7"),
    a_change("spring:8", a_summary("spring:8", learner=None), a_summary("spring:8", checks=(a_check("fresh"),))),
)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, "1 2 3 4 5 6 7 8"),
        ({"learner": "learner autumn:2"}, "2"),
        ({"learner": "learner autumn"}, ""),
        ({"learner": ""}, "8"),
        ({"text": "AUTUMN"}, "1 2 3"),
        ({"text": "learner spring"}, "4 5 6 7"),
        ({"kinds": [Kind.NEWLY_FAILING]}, "1"),
        ({"kinds": [Kind.OUTDATED, Kind.PENDING]}, "6 7"),
        ({"differs": True}, "1 3 4 5 6 8"),
        ({"old": "failed"}, "2 3 4"),
        ({"new": "failed"}, "1 2 3 6"),
        ({"old": "passed", "new": "failed"}, "1 6"),
        ({"old": "passed"}, "1 5 6 7 8"),
        ({"check": "throughput_ratio", "old": "passed", "new": "failed"}, "1 3 6"),
        ({"check": "throughput_ratio", "differs": True}, "1 3 4 5 6 8"),
        ({"check": "reflections", "differs": True}, "8"),
        ({"check": "reflections", "old": "failed"}, "2 3"),
        ({"check": "fresh"}, "8"),
        ({"check": "fresh", "old": "absent", "new": "passed"}, "8"),
        ({"check": "reflections", "new": "absent"}, "8"),
        ({"check": "nowhere"}, ""),
        ({"step": "benchmark", "check": "throughput_ratio", "new": "inconclusive"}, "5"),
        ({"step": "baseline", "check": "throughput_ratio"}, ""),
        ({"step": "benchmark", "new": "failed"}, "1 3 6"),
        ({"step": "benchmark", "differs": True}, "1 3 4 5 6 8"),
        ({"step": "reflection", "differs": True}, "8"),
        ({"step": "nowhere"}, ""),
        ({"code": "throughput_ratio.too_low"}, "1 3 6"),
        ({"code": "reflections.too_low", "differs": True}, "3"),
        ({"text": "spring", "kinds": [Kind.NEWLY_PASSING]}, "4"),
    ],
    ids=str,
)
def test_filter_chooses(conditions, expected):
    """All conditions hold at once; results are those of the check, else of the step, else of the whole verdict."""
    rows = rows_of(CHANGES, Filter.model_validate(conditions))
    assert " ".join(change.submission_id[-1] for _, change in rows) == expected


def test_rows_are_given_one_at_a_time():
    """Nothing is read beyond the row that was asked for."""
    taken = []

    def source():
        for change in CHANGES:
            taken.append(change.submission_id)
            yield change

    rows = rows_of(source(), Filter(kinds=(Kind.NEWLY_FAILING,)))
    assert next(rows)[0] is Kind.NEWLY_FAILING
    assert taken == ["autumn:1"]


def test_a_narrowed_diff_counts_only_what_was_chosen():
    """Other checks and steps are left out of it, and it says what it was narrowed to."""
    chosen = Filter(check="throughput_ratio", differs=True)
    diff = a_diff(CHANGES, chosen=chosen)
    assert (diff.chosen, diff.count(), diff.changed, diff.count(Kind.OUTDATED)) == (chosen, 6, 5, 1)
    assert [item.check for item in diff.checks] == ["throughput_ratio"]
    assert {item.check for item in diff.codes} == {"throughput_ratio"}
    assert [mover.submission_id for mover in diff.newly_failing] == ["autumn:1"]
    by_step = a_diff(CHANGES, chosen=Filter(step="reflection"))
    assert [item.step for item in by_step.steps] == ["reflection"]
    assert [item.check for item in by_step.checks] == ["reflections"]
