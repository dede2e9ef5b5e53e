"""Any text is judged: quickly, the same each time, and without an exception."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.reflections.meaning.model import model
from tests.checks.reflections.lists import LOSES, WINS, judge

PARTS = st.sampled_from(
    [
        *"aа图画कر가 .,;?%-4\n\t\u200b\u202e\ud7ff",
        "jpeg",
        "decode",
        " GPU ",
        "ядер",
        "解码",
        "ถอด",
        "8 cores",
        "30 %",
        "32x32",
        "not ",
    ]
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(PARTS, max_size=60).map("".join))
LISTS = st.lists(TEXTS, max_size=8)


@settings(max_examples=150, deadline=None)
@given(wins=LISTS, loses=LISTS)
def test_any_lists_are_judged(wins, loses):
    """Every item gets a reason, the score fits the outcome, and judging again gives the same."""
    result = judge(wins, loses)
    assert result == judge(wins, loses)
    assert (result.outcome == "passed") == (result.score == 1.0) == (result.code == "reflections.ok")
    assert (result.outcome == "inconclusive") == (result.score is None) == (result.code == "reflections.needs_review")
    assert result.score is None or 0 <= result.score <= 1
    assert len(result.feedback) <= 8000


@settings(max_examples=60, deadline=None)
@given(noise=st.text(max_size=40), position=st.integers(0, 3))
def test_noise_beside_a_good_list_changes_nothing(noise, position):
    """Extra items never fail a list that is good without them."""
    assert judge(wins=[*WINS[:position], noise, *WINS[position:]]).outcome == "passed"


@settings(max_examples=60, deadline=None)
@given(st.permutations(WINS), st.permutations(LOSES))
def test_order_does_not_matter(wins, loses):
    """Good lists are good in any order."""
    assert judge(wins, loses).outcome == "passed"


@pytest.mark.parametrize(
    "change", [str.upper, str.lower, lambda text: f"  {text}\n", lambda text: f"1. {text}", lambda text: f"**{text}**"]
)
def test_typing_habits_do_not_matter(change):
    """Case, spaces, numbers and markup are not judged."""
    assert judge([change(text) for text in WINS], [change(text) for text in LOSES]).outcome == "passed"


HOSTILE = {
    "one word": "a" * 8192,
    "base64": "aB3/+" * 1638,
    "digits": "1," * 4096,
    "times": "1x" * 4096,
    "Han": "解码图像" * 2048,
    "Thai": "ถอดรหัสภาพ" * 819,
    "marks": "a" + "\u0301" * 8191,
    "ligatures": "\ufdfa" * 8192,
    "two alphabets": "аb" * 4096,
    "compound": "bilddekodierung" * 546,
    "Arabic": "والصور " * 1170,
    "terms": "jpeg decode cpu cores gpu waits 4 GPUs, slow. " * 178,
    "markup": "<|## role: " * 744,
    "bullets": "- a\n" * 2048,
}


@pytest.mark.parametrize("text", list(HOSTILE.values()), ids=list(HOSTILE))
def test_hostile_text_stays_cheap(text):
    """64 items of 8 KB on each side take well under a second of a processor."""
    model()
    started = time.process_time()
    assert judge([text] * 64, [text] * 64, min_wins=64, min_loses=64).outcome == "failed"
    assert time.process_time() - started < 10


def test_permutations_stay_cheap():
    """Entries of the same characters in other orders, which a comparison of sequences may choke on."""
    draw = random.Random(1)
    texts = ["".join(draw.sample("解码" * 1200, 2400)) for _ in range(5)]
    started = time.process_time()
    judge(texts[:3], texts[3:])
    assert time.process_time() - started < 5


def test_a_normal_list_takes_milliseconds():
    """5 ms is the aim; the bound leaves room for a busy machine."""
    judge()
    times = []
    for number in range(30):
        started = time.process_time()
        judge([f"{text} {number}" for text in WINS], LOSES)
        times.append(time.process_time() - started)
    assert sorted(times)[15] < 0.1
