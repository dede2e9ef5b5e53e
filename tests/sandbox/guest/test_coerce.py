"""A learner's values become small plain JSON values, whatever their classes try (V01-V07, R01, R12, R13, S14)."""

import decimal
import fractions
import json
import math
import pathlib
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader_service.model.discovery import Claim, PathClaim, TextList
from sandbox.guest.learner import coerce


def pretending(answer):
    """A class whose instances give another one when they are asked for theirs."""
    return type("Pretending", (), {"__class__": property(lambda _: answer())})


class EqualsEverything:
    def __eq__(self, other):
        return True

    __hash__ = None

    def __bool__(self):
        return True

    def __float__(self):
        return 9999.0


class NoName(type):
    @property
    def __name__(cls):
        raise RuntimeError("nameless")

    @property
    def __module__(cls):
        raise RuntimeError("homeless")


class RaisingText:
    def __str__(self):
        raise SystemExit(3)

    __repr__ = __str__


class HighFloat(float):
    """A float that wins every comparison and answers for 9999."""

    def __gt__(self, other):
        return True

    def __float__(self):
        return 9999.0

    def __mul__(self, other):
        return 9999.0


class HighInt(int):
    def __int__(self):
        return 9999

    __index__ = __float__ = __int__


# Made inside the tests: pytest itself stumbles over such objects as parameters.
NASTY = {
    "raising class": pretending(lambda: 1 / 0),
    "pretends to be str": pretending(lambda: str),
    "pretends to be float": pretending(lambda: float),
    "nameless type": NoName("Nameless", (), {}),
    "raising text": RaisingText,
    "object": object,
    "type": lambda: type,
    "function": lambda: as_json,
    "endless name": type("N" * 100_000, (), {}),
    "broken str": lambda: type(
        "StrLike",
        (str,),
        {"__module__": "builtins", "__getitem__": lambda *_: 1 / 0, "__repr__": lambda _: 1 / 0, "__str__": None},
    )("text"),
}


def as_json(value):
    """What the host will read."""
    return json.loads(json.dumps(value, allow_nan=False))


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (1234.5, 1234.5),
        (1234, 1234.0),
        (-3, -3.0),
        (0, 0.0),
        (1e308, 1e308),
        (decimal.Decimal("812.5"), 812.5),
        (fractions.Fraction(3, 4), 0.75),
        (np.float32(2.5), 2.5),
        (np.float64(2.5), 2.5),
        (np.int64(7), 7.0),
        (np.array(7.5), 7.5),
        (np.array([[7.5]]), 7.5),
        (2**1000, float(2**1000)),
        (True, None),
        ("1234.5", None),
        (b"7", None),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        (-math.inf, None),
        (decimal.Decimal("NaN"), None),
        (decimal.Decimal("Infinity"), None),
        (1 + 2j, None),
        (np.complex64(1), None),
        (np.float64("nan"), None),
        (np.array([1.0, 2.0]), None),
        (np.array("12"), None),
        (np.array(True), None),
        (np.bool_(True), None),
        ([1.0], None),
        ({"rate": 1.0}, None),
        (2**1100, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_honest_numbers_are_read_and_nothing_else(value, read):
    """Numbers of Python, NumPy, Decimal and Fraction are claims with their value.

    NaN, infinities, huge integers, booleans and texts are unreadable claims.
    """
    claim = Claim.model_validate(as_json(coerce.number(value)))
    assert (claim.status, claim.value) == ("unreadable" if read is None else "present", read)


@pytest.mark.parametrize("value", [HighFloat(2.0), HighInt(2), np.float64(2.0), EqualsEverything()])
def test_a_subclass_cannot_answer_for_another_number(value):
    """The stored number of a float or int subclass is taken, not what its methods say."""
    read = coerce.number(value)
    assert read["value"] in (2.0, None)
    assert type(read["value"]) in (float, type(None))


def test_huge_integers_are_shown_by_their_size():
    """No million digits are printed, which would take minutes: V06."""
    assert coerce.shown(10**100_000) == "int of 332193 bits"
    started = time.monotonic()
    assert coerce.number(1 << 10_000_000)["status"] == "unreadable"
    assert time.monotonic() - started < 1.0


def test_torch_scalars_are_read(lab_child):
    """0-d and one-element tensors of any dtype and with a gradient are numbers; bool and larger ones are not."""

    def in_torch():
        import torch

        values = [
            torch.tensor(5.5),
            torch.tensor([[6]]),
            torch.tensor(2.5, dtype=torch.bfloat16),
            torch.tensor(3.0, requires_grad=True),
            torch.tensor(True),
            torch.ones(2),
            torch.tensor(float("nan")),
            torch.tensor(1 + 1j),
        ]
        return [coerce.number(value)["value"] for value in values]

    assert lab_child(in_torch) == [5.5, 6.0, 2.5, 3.0, None, None, None, None]


@pytest.mark.parametrize("make", NASTY.values(), ids=NASTY)
def test_nothing_of_a_hostile_object_escapes(make):
    """Every reader answers for every object, in bounded text, and raises nothing; none is taken for a number."""
    value = make()
    claim = Claim.model_validate(as_json(coerce.number(value)))
    assert (claim.status, claim.value) == ("unreadable", None)
    PathClaim.model_validate(as_json(coerce.path(value)))
    TextList.model_validate(as_json(coerce.text_list(value)))
    listed = TextList.model_validate(as_json(coerce.text_list([value, {"why": value}, (value, value)])))
    assert listed.status == "present"
    assert len(coerce.text(value, 50)) <= 50
    assert len(coerce.shown(value)) <= coerce.MAX_SHOWN


def test_texts_are_cut_and_can_be_sent():
    """Lone surrogates become question marks and nothing exceeds its limit."""
    assert coerce.text("a\ud800b", 10) == "a?b"
    assert coerce.text("x" * 10_000_000, 100) == "x" * 100
    assert coerce.text(RaisingText(), 100) == "<RaisingText whose str() raised SystemExit>"


def test_recursive_containers_are_read_once():
    """A list in itself, or a dict in itself, ends: V06."""
    endless = ["first", "second"]
    endless.append(endless)
    loop = {}
    loop["self"] = loop
    assert coerce.text_list(endless)["items"][:2] == ["first", "second"]
    assert coerce.text_list(loop)["status"] == "present"
    assert coerce.number(endless)["status"] == "unreadable"


def test_paths_of_every_honest_kind(tmp_path, monkeypatch):
    """str, bytes, Path, home and relative paths become absolute ones; `~name` of an unknown user stays a name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/lea")
    read = [
        coerce.path(value)["path"] for value in ("/data/x", b"/data/x", pathlib.Path("/data/x"), "/data/../data/x/")
    ]
    assert read == ["/data/x"] * 4
    assert coerce.path("images")["path"] == f"{tmp_path}/images"
    assert coerce.path("~/images")["path"] == "/home/lea/images"
    assert coerce.path("~no-such-user/x")["path"] == f"{tmp_path}/~no-such-user/x"
    assert coerce.path(np.str_("/data/x"))["path"] == "/data/x"
    assert coerce.path("/data/bücher und bilder")["path"] == "/data/bücher und bilder"


class LyingStr(str):
    """A str whose methods tell another text, which is another path."""

    __slots__ = ()

    def __str__(self):
        return "/invented"

    def __getitem__(self, _):
        return "/invented"

    def startswith(self, *_):
        return False

    def splitlines(self, *_):
        return ["/invented"] * 3


class FreshPath:
    """Names another folder each time: S14."""

    def __init__(self):
        self.calls = 0

    def __fspath__(self):
        self.calls += 1
        return f"/folder-{self.calls}"


class NumberPath:
    def __fspath__(self):
        return 5


class RaisingPath:
    def __fspath__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "value",
    [
        *("", "a\0b", "/x\0", b"/x\0y", "\ud800", "/a/\udcff", b"/a/\xff", "/" + "a/" * 4000),
        *(5, None, ["/x"], NumberPath(), RaisingPath()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_path_is_unreadable(value):
    """NUL, names that UTF-8 cannot carry, numbers and raising objects are unreadable, and say nothing false.

    More than 4096 characters, which no system knows, are not cut to another folder.
    """
    claim = PathClaim.model_validate(as_json(coerce.path(value)))
    assert (claim.status, claim.path) == ("unreadable", None)


def test_a_path_is_taken_once_and_from_its_characters():
    """A path object is asked once, and a str subclass is read as the text that it holds."""
    fresh = FreshPath()
    assert coerce.path(fresh)["path"] == "/folder-1"
    assert fresh.calls == 1
    assert coerce.path(LyingStr("/data"))["path"] == "/data"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.frozensets(st.text(), max_size=3)
    ),
    max_leaves=12,
)


@given(JUNK)
def test_any_value_gives_a_claim_that_the_host_accepts(value):
    """Whatever a namespace holds, the three readers answer with what the host's models take."""
    Claim.model_validate(as_json(coerce.number(value)))
    PathClaim.model_validate(as_json(coerce.path(value)))
    TextList.model_validate(as_json(coerce.text_list(value)))
