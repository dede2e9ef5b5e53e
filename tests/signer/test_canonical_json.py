"""What is signed: the same bytes as the library's, whichever way they were made."""

import math

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from grader_service.signer.canonical_json import canonical_json

NUMBERS = st.one_of(st.integers(-(2**60), 2**60), st.floats(), st.floats(-10, 10), st.integers(-9, 9).map(float))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=5), inner, max_size=5)),
    max_leaves=20,
)


def either(write, document):
    try:
        return write(document)
    except rfc8785.CanonicalizationError as error:
        return type(error)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
@example({"b": [1.0, -0.0, 1e15, 2.0**53, 1e16, 1e20, 1e21], "a": [1e-4, 9.999e-5, 1e-6, 1e-7, 5e-324]})
@example({"\U0001f600": 1, "\ue000": 2, "\u20ac": 3})
@example({"text": '\x00\x07\b\t\n\f\r\x1f\x7f"\\/\u2028é\U0001f600'})
@example({"text": "\ud800"})
@example({"many": 2**53, "least": -(2**53) + 1})
def test_the_bytes_are_those_of_the_library(document):
    """Whatever a document holds; what the library refuses is refused with its error."""
    assert either(canonical_json, document) == either(rfc8785.dumps, document)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2**53, {1: 2}, {1, 2}])
def test_what_has_no_canonical_form_is_refused(value):
    """An encoder of Python's would write `NaN`, and the key 1 as "1"."""
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical_json({"value": [value]})
