"""Judging in bulk rests while learners' submissions come in, and goes on all the same."""

import time

from grader_service.regrade import yielding
from grader_service.regrade.yielding import LiveWatch
from grader_service.store.operations import work_came
from tests.store.factories import a_submission, accept
from tests.waiting import wait_for


def test_an_arrival_is_seen_for_a_moment(store):
    """And then no more: who waits for a device is not helped by a processor."""
    assert not work_came(store, 60.0)
    accept(store, a_submission())
    assert work_came(store, 60.0)
    time.sleep(0.05)
    assert not work_came(store, 0.01)


def test_bulk_work_rests_after_an_arrival(store, monkeypatch):
    """For a moment; with nothing coming in it does not wait at all."""
    monkeypatch.setattr(yielding, "_FRESH_S", 3.0)  # a busy disk may take longer than the moment of the service
    with LiveWatch(store) as watch:
        assert watch._quiet.is_set()
        accept(store, a_submission())
        wait_for(lambda: not watch._quiet.is_set(), 5, every_s=0.005)
        wait_for(watch._quiet.is_set, 5)


def test_a_busy_day_does_not_stop_it(store):
    """However many come in, the rest between two items is short."""
    watch = LiveWatch(store)
    watch._quiet.clear()
    began = time.monotonic()
    watch.rest()
    assert 0.1 < time.monotonic() - began < 5.0
