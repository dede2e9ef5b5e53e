"""A learner's reflections become a bounded list of texts, whatever container holds them (R01, R12, R13)."""

import collections
import dataclasses
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader_service.model.discovery import TextList
from sandbox.frames import FrameLimits
from sandbox.guest.learner import coerce
from tests.sandbox.guest.test_coerce import LyingStr, as_json


@dataclasses.dataclass
class Scenario:
    name: str
    reason: str


class RaisingFields:
    __dataclass_fields__ = property(lambda _: 1 / 0)


Pair = collections.namedtuple("Pair", "where why")  # noqa: PYI024 - the kind that learners write


TWO = ["JPEG training", "video on NVDEC"]


@pytest.mark.parametrize(
    ("value", "items"),
    [
        (TWO, TWO),
        (tuple(TWO), TWO),
        (set(TWO), TWO),
        (frozenset(TWO), TWO),
        (collections.deque(TWO), TWO),
        (dict.fromkeys(TWO), TWO),
        (dict.fromkeys(TWO, True), TWO),
        (dict.fromkeys(TWO, ""), TWO),
        (dict.fromkeys(TWO).keys(), TWO),
        (dict(enumerate(TWO)).values(), TWO),
        (np.array(TWO), TWO),
        ({"JPEG": "training", "video": "NVDEC"}, ["JPEG: training", "video: NVDEC"]),
        ([("JPEG", "training"), ["video", "NVDEC"]], ["JPEG: training", "video: NVDEC"]),
        ([{"scenario": "JPEG", "why": "training"}], ["scenario: JPEG: why: training"]),
        ([Scenario("JPEG", "training")], ["JPEG: training"]),
        ([Pair("JPEG", "training")], ["JPEG: training"]),
        ([SimpleNamespace(where="JPEG")], ["namespace(where='JPEG')"]),
        ({"JPEG": np.array(["a", "b"])}, ["JPEG: ['a' 'b']"]),
        (["one", None, "two"], ["one", "two"]),
        ([], []),
        ((), []),
        ("", []),
        ("one sentence only", ["one sentence only"]),
        ("- JPEG training\n- video on NVDEC", ["- JPEG training", "- video on NVDEC"]),
        ("Wins:\n* JPEG\n  training\n* video", ["* JPEG training", "* video"]),
        ("1. JPEG\n2) video\n(3) many GPUs", ["1. JPEG", "2) video", "(3) many GPUs"]),
        ("• JPEG\r\n• video\r\n", ["• JPEG", "• video"]),
        ("JPEG\ntraining\n\nvideo", ["JPEG training", "video"]),
        ("JPEG\r\ntraining\r\n\r\nvideo", ["JPEG training", "video"]),
        ("JPEG\nvideo", ["JPEG", "video"]),
        ("3.5x faster on JPEG\n1.2x on PNG", ["3.5x faster on JPEG", "1.2x on PNG"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_reflections_of_every_honest_shape(value, items):
    """List, tuple, set, dict, records, NumPy array, and one text with bullets, numbers, paragraphs or lines: R12."""
    read = TextList.model_validate(as_json(coerce.text_list(value)))
    assert read.status == "present"
    assert sorted(read.items) == sorted(items)
    assert not read.truncated


@pytest.mark.parametrize(
    "value",
    [None, 5, 2.5, True, b"bytes", Scenario("a", "b"), object(), iter(TWO)],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_list_of_texts_is_unreadable(value):
    """Nothing is guessed from a number, an object or a generator."""
    assert coerce.text_list(value)["status"] == "unreadable"


class LongList(list):
    """Says that it has many items: R01."""

    def __len__(self):
        return 100

    def __iter__(self):
        return iter(["invented"] * 100)

    def __getitem__(self, _):
        return "invented"


class LongDict(dict):
    def items(self):
        return [("invented", None)] * 100


class EndlessSet(set):
    def __iter__(self):
        while True:
            yield "invented"


@pytest.mark.parametrize(
    "value",
    [
        LongList(["real"]),
        LongDict({"real": None}),
        EndlessSet({"real"}),
        LyingStr("real"),
        [LyingStr("real")],
        type("T", (tuple,), {"__iter__": lambda _: iter(["invented"] * 9)})(["real"]),
    ],
)
def test_what_a_container_holds_counts_and_not_what_it_says(value):
    """Subclasses of built-in containers are read by the built-in type's own methods."""
    assert coerce.text_list(value)["items"] == ["real"]


def test_one_bad_item_does_not_cost_the_others():
    """A record whose fields raise is text that says so; its neighbours are read."""

    class Broken(Scenario):
        @property
        def name(self):
            raise RuntimeError("gone")

        @name.setter
        def name(self, value):
            pass

    items = coerce.text_list(["real", Broken("a", "b"), {"n": np.ones(2)}, RaisingFields(), "also real"])["items"]
    assert items[0] == "real"
    assert items[-1] == "also real"
    assert len(items) == 5


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000_000,
        ["x" * 10_000_000],
        ["x"] * 1_000_000,
        "- x\n" * 1_000_000,
        dict.fromkeys(range(1_000_000)),
        set(range(300_000)),
    ],
    ids=["text", "item", "items", "bullets", "dict", "set"],
)
def test_size_is_bounded_and_said(value):
    """Ten megabytes of text or a million items are cut, marked as cut, and cost little: R13."""
    started = time.monotonic()
    read = TextList.model_validate(as_json(coerce.text_list(value)))
    assert read.truncated
    assert len(read.items) <= coerce.MAX_ITEMS
    assert all(len(item) <= coerce.MAX_ITEM for item in read.items)
    assert time.monotonic() - started < 2.0


@pytest.mark.parametrize("letter", ["a", "\ufdfa", "\U0001f600", '"', "\\"])
def test_two_full_lists_fit_into_one_frame(letter):
    """However many bytes a character takes once it is escaped."""
    found = coerce.text_list([letter * coerce.MAX_ITEM] * coerce.MAX_ITEMS)
    assert found["truncated"]
    assert len(json.dumps({"where_dali_wins": found, "where_dali_loses": found})) < FrameLimits().json_bytes * 0.9
    assert TextList.model_validate(found).items[0] == letter * coerce.MAX_ITEM


@given(st.text(alphabet=st.characters(), max_size=300))
def test_no_word_of_a_text_is_lost_between_bullets(block):
    """Splitting keeps every line from the first bullet on, and each item is one line."""
    items = coerce.text_list(block)["items"]
    assert all("\n" not in item for item in items)
    kept = "".join("".join(items).split())
    whole = "".join(block.encode("utf-8", "replace").decode().split())
    assert whole.endswith(kept)
