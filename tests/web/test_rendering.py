"""What templates show of numbers, times and details, and answers that are kept for a while."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from grader_service.web import site
from grader_service.web.forms import parse
from grader_service.web.rendering import ago, count, detail, duration, environment, instant, iso, link
from grader_service.web.site import Remembered
from tests.hand_clock import HandClock
from tests.store.threads import at_once


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "–"),
        (-5, "0 s"),
        (0, "0 s"),
        (0.4, "under 1 s"),
        (1, "1 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3605, "1 h"),
        (90061, "1 d 1 h"),
        (1e9, "11574 d 1 h"),
    ],
)
def test_durations_say_two_units(seconds, said):
    """The largest that say something."""
    assert duration(seconds) == said


def test_times_are_utc_and_never_break():
    """Also those that no calendar has."""
    assert instant(0.0) == "1970-01-01 00:00:00"
    assert iso(0.0) == "1970-01-01T00:00:00+00:00"
    for odd in (None, 1e300, -1e300, float("nan")):
        assert instant(odd) == "–"
        assert iso(odd) == ""
    assert ago(None) == "–"
    assert ago(61) == "1 min 1 s ago"
    assert count(None) == "–"
    assert count(1234567) == "1,234,567"


def test_details_are_one_short_line():
    """Whatever an event holds."""
    assert detail({"a": 1, "b": "x", "empty": "", "none": None, "zero": 0}) == "a=1 · b=x · zero=0"
    assert detail({"checks": {"a": "passed"}}) == 'checks={"a": "passed"}'
    assert "\u202e" not in detail({"a": "x\u202ey"})
    assert len(detail({"a": "x" * 5000})) == 400
    assert detail({}) == ""


def test_links_hold_what_is_not_empty():
    """And quote it."""
    assert link("/x") == "/x"
    assert link("/x", a="", b=None, c="ä&b", d=["1", "2"]) == "/x?c=%C3%A4%26b&d=1&d=2"


def test_templates_escape_everything():
    """Text of anybody, in text and in attributes."""
    template = environment().from_string('<a title="{{ text }}">{{ text }}</a>')
    shown = template.render(text="\"'><script>\u202e")
    assert "<script>" not in shown
    assert "\"'>" not in shown
    assert "\u202e" not in shown


def test_fields_are_bounded_and_cleaned():
    """Line ends are one character, reordering characters are none; odd bytes break nothing."""
    fields = parse(b"a=1&a=2&b=x%0D%0Ay&c=%E2%80%AE&d=&%FF=%FE&e=+x+")
    assert fields.one("a") == "2"
    assert fields.many("a") == ("1", "2")
    assert fields.one("b") == "x\ny"
    assert fields.one("c") == "\ufffd"
    assert fields.one("d", "default") == ""
    assert fields.one("none", "default") == "default"
    assert fields.one("e") == "x"
    with pytest.raises(ValueError, match="fields"):
        parse(b"a=1&" * 501)


def test_answers_are_kept_as_long_as_they_cost(monkeypatch):
    """A quick one for a moment, a slow one for longer."""
    made = []
    clock = HandClock()
    monkeypatch.setattr(site, "time", SimpleNamespace(monotonic=clock))

    def make(took_s):
        clock.now += took_s
        made.append(took_s)
        return len(made)

    kept = Remembered(keep_s=0.0, costs=3.0)
    assert kept.get("slow", lambda: make(0.2)) == 1
    assert kept.get("slow", lambda: make(0.2)) == 1
    assert kept.get("quick", lambda: make(0.0)) == 2
    clock.now += 0.7
    assert kept.get("slow", lambda: make(0.0)) == 3


def test_impatient_visitors_share_one_answer():
    """Ten at once make it once; the oldest of many answers makes room."""
    made = []

    def make():
        time.sleep(0.1)
        made.append(1)
        return len(made)

    kept = Remembered(most=2)
    assert set(at_once(10, lambda _: kept.get("key", make))) == {1}
    assert made == [1]
    for key in ("a", "b"):
        kept.get(key, make)
    assert kept.get("key", make) == 4


def test_a_costly_answer_holds_up_nobody_else():
    """While one is made, others are made too, and those that are kept are there at once."""
    kept = Remembered()
    assert kept.get("kept", lambda: 1) == 1
    begun, done = threading.Event(), threading.Event()

    def costly():
        begun.set()
        assert done.wait(20)
        return 2

    with ThreadPoolExecutor(2) as pool:
        pool.submit(kept.get, "costly", costly)
        assert begun.wait(20)
        others = pool.submit(lambda: [kept.get("kept", lambda: 3), kept.get("other", lambda: 4)])
        try:
            assert others.result(5) == [1, 4]
        finally:
            done.set()
    assert kept.get("costly", lambda: 5) == 2


def test_a_failed_answer_is_not_kept():
    """The next visitor tries again; nothing is left of turns, however many answers failed or are forgotten again."""
    kept = Remembered(most=2)
    for number in range(10):
        with pytest.raises(ZeroDivisionError):
            kept.get(number, lambda: 1 // 0)
        assert not kept._turns
        assert kept.get(number, lambda: 1) == 1
    assert not kept._turns
