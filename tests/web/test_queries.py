"""Lists: their order, their filters, and going on where a page ended; on both databases."""

import time

import pytest

from grader_service.store import regrade_apply, regrades
from grader_service.store.events import record
from grader_service.web.queries import (
    PAGE,
    UNGRADED,
    EventFilter,
    SubmissionFilter,
    choices,
    events,
    graded_lately,
    in_force_since,
    item_counts,
    submissions,
    verdict_document,
    verdict_line,
    verdicts_of,
)
from grader_service.web.rendering import iso
from tests.regrade.deps import some_deps, worked_off
from tests.regrade.stored import fill
from tests.web.client import Client, served
from tests.web.stock import BIDI, COUNT, IMAGE, SCRIPT

EVERYTHING = SubmissionFilter()


def walk(store, chosen=EVERYTHING, size=7):
    """Every submission, page by page."""
    found, after = [], None
    while True:
        rows = submissions(store, chosen, after, size)
        found += rows[:size]
        if len(rows) <= size:
            return found
        after = (rows[size - 1].received_at, rows[size - 1].submission_id)


@pytest.mark.parametrize("size", [1, 7, COUNT - 1, COUNT, COUNT + 1])
def test_pages_hold_every_submission_once(place, size):
    """The last received first; also where the last page is just full."""
    assert [line.submission_id for line in walk(place.store, size=size)] == place.seen["ids"][::-1]
    assert len(submissions(place.store, EVERYTHING)) == PAGE + 1


def test_filters_hold_together(place):
    """Part of an id or of a learner's name, cohort, lab, status."""
    ids = place.seen["ids"]
    everything = walk(place.store)

    def found(**chosen):
        return [line.submission_id for line in walk(place.store, SubmissionFilter(**chosen))]

    assert found(text=ids[10].upper()) == [ids[10]]
    assert found(text="<SCRIPT>") == [ids[0]]
    assert found(text="onerror=window") == [ids[1]]
    assert found(text=BIDI) == [ids[2]]
    assert found(text="f" * 12) == [ids[4]]  # the beginning of its run's id
    assert found(text="fff") == []
    assert found(cohort="x" * 180) == [ids[3]]
    assert len(found(cohort="autumn")) == COUNT - 1
    assert found(cohort="autum") == []
    assert len(found(lab="dali-pipelines")) == COUNT
    assert found(lab="other") == []
    for status in ("passed", "failed", "rejected", "inconclusive"):
        assert found(status=status) == [line.submission_id for line in everything if line.status == status]
    assert sum(len(found(status=status)) for status in ("passed", "failed", "rejected", "inconclusive")) == COUNT
    assert found(status=UNGRADED) == []
    assert found(text=ids[0], status="error") == []


@pytest.mark.parametrize("text", ["%", "_", "\\", "learner-%", "*"])
def test_wildcards_are_characters(place, text):
    """Nobody is called so."""
    assert submissions(place.store, SubmissionFilter(text=text)) == []


def test_choices_are_what_there_is(place):
    """Cohorts and labs, in order."""
    assert choices(place.store) == {"cohorts": ("autumn", "x" * 180), "labs": ("dali-pipelines",)}


def test_every_verdict_of_a_submission_is_listed(place):
    """The one in force, those before it, and those of batches that were not applied."""
    lines = verdicts_of(place.store, place.rejected())
    assert [line.created_at for line in lines] == sorted((line.created_at for line in lines), reverse=True)
    assert sum(line.current for line in lines) == 1
    assert {line.batch_id for line in lines} >= {None, place.seen["finished"], place.seen["applied"]}
    current = next(line for line in lines if line.current)
    assert current.batch_id == place.seen["applied"]
    assert verdict_line(place.store, current.verdict_id) == current
    assert f'"verdict_id":"{current.verdict_id}"' in verdict_document(place.store, current.verdict_id)
    assert verdict_line(place.store, "none") is None
    assert verdict_document(place.store, "none") is None
    assert verdicts_of(place.store, "none") == []


def test_a_verdict_is_in_force_since_it_came_in_force(store):
    """Not since it was made: a batch may be applied later, and what was undone brings an old verdict back."""
    (submission_id,) = fill(store, 1)

    def current():
        return next(line for line in verdicts_of(store, submission_id) if line.current)

    def moment(kind):
        return events(store, EventFilter(submission=submission_id, kind=kind))[0].at

    first = current()
    assert in_force_since(store, first) == first.created_at
    batch_id = worked_off(some_deps(store))
    made = verdicts_of(store, submission_id)[0].created_at
    time.sleep(0.05)
    regrade_apply.apply(store, batch_id, "operator:tests")
    assert current().created_at == made
    assert in_force_since(store, current()) == moment("regraded") > made
    regrade_apply.revert(store, batch_id, "operator:tests")
    assert current() == first
    assert in_force_since(store, first) == moment("regrade_undone") > moment("regraded")
    with served(store) as port:
        shown = Client(port).get(f"/submissions/{submission_id}").text
    assert f'in force since <time datetime="{iso(moment("regrade_undone"))}"' in shown


def test_items_are_counted_by_batch_and_state(place):
    """In one question; a batch that was not asked for is not in it."""
    running, finished = place.seen["running"], place.seen["finished"]
    for batch_id in (running, finished):
        assert item_counts(place.store, [batch_id]) == {batch_id: regrades.progress(place.store, batch_id).counts}
    assert set(item_counts(place.store, [running, finished, "rg-none"])) == {running, finished}
    assert item_counts(place.store, []) == {}


def test_verdicts_of_today_are_counted(place):
    """Those in force; a batch that is not applied gives none."""
    assert sum(graded_lately(place.store, 366 * 86400.0).values()) == COUNT
    assert graded_lately(place.store, 0.0) == {}


def test_events_go_on_before_the_last(store):
    """The newest first; by kind, part of the actor, submission and batch."""
    with store.transaction() as connection:
        for number in range(20):
            record(
                connection,
                "odd" if number % 2 else "even",
                f"web:Ann {number}%",
                submission_id=f"s-{number % 3}",
                batch_id="rg-1" if number < 4 else None,
                number=number,
                text=SCRIPT + IMAGE,
            )
    found, before = [], None
    while True:
        rows = events(store, EventFilter(), before, 6)
        found += rows[:6]
        if len(rows) <= 6:
            break
        before = rows[5].id
    assert [line.detail["number"] for line in found] == list(range(19, -1, -1))

    def numbers(**chosen):
        return [line.detail["number"] for line in events(store, EventFilter(**chosen))]

    assert numbers(kind="odd") == list(range(19, 0, -2))
    assert numbers(kind="od") == []
    assert numbers(actor="ann 1%") == [1]
    assert numbers(submission="s-2", kind="even") == [14, 8, 2]
    assert numbers(batch="rg-1") == [3, 2, 1, 0]
