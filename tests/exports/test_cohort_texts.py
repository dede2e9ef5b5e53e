"""What learners were told stands beside the verdict that it belongs to, with few documents in memory."""

import pytest

from grader_service.exports.cohorts.texts import with_texts
from grader_service.model.verdict_summary import CohortEntry, summary_of
from tests.regrade.makers import MOMENT
from tests.report.factories import check, verdict


def a_verdict(number):
    """One whose texts hold its number."""
    return verdict(
        submission_id=f"s:{number:03d}",
        verdict_id=f"v:{number:03d}",
        feedback=f"all of {number}",
        checks=(check(feedback=f"images of {number}"),),
    )


@pytest.mark.parametrize("count", [0, 1, 200, 201, 450])
def test_each_entry_comes_with_its_texts(count):
    """In order, whatever the size of a chunk; asked for before the next entry is read."""
    verdicts = [a_verdict(number) for number in range(count)]
    known = {made.verdict_id: made.model_dump_json() for made in verdicts}
    asked = []

    def documents(ids):
        asked.append(len(ids))
        return {name: known[name] for name in ids}

    entries, texts = with_texts((CohortEntry(summary_of(v), MOMENT, None, "lab.py") for v in verdicts), documents)
    found, held = [], set()
    for entry in entries:
        found.append((entry.summary.submission_id, texts[entry.summary.submission_id]))
        held.add(len(texts))
    assert max(held, default=0) <= 200
    assert found == [
        (made.submission_id, {"": f"all of {number}", "baseline/jpeg_dataset": f"images of {number}"})
        for number, made in enumerate(verdicts)
    ]
    assert sum(asked) == count
    assert max(asked, default=0) <= 200


def test_a_document_that_is_not_there_or_none_has_no_texts():
    """The entry comes all the same."""
    verdicts = [a_verdict(number) for number in range(3)]
    known = {"v:000": verdicts[0].model_dump_json(), "v:001": '{"feedback": 3}'}
    entries, texts = with_texts((CohortEntry(summary_of(v), MOMENT, None, "x") for v in verdicts), lambda _: known)
    assert [bool(texts.get(entry.summary.submission_id)) for entry in entries] == [True, False, False]
