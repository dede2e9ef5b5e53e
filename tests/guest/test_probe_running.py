"""What a probe returns is made into values that any reader takes, or refused with a word."""

import pytest

from sandbox.guest.probes import running


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({"a": (1, 2.5, None, True)}, {"a": [1, 2.5, None, True]}),
        ({"nan": float("nan"), "inf": float("-inf")}, {"nan": None, "inf": None}),
        ({"name \udce9": "file \udce9.jpg"}, {"name ?": "file ?.jpg"}),
        ({"most": (1 << 63) - 1}, {"most": (1 << 63) - 1}),
    ],
)
def test_values_are_made_plain(value, plain):
    """Nothing that JSON or UTF-8 cannot carry is left."""
    assert running.to_plain(value) == plain


@pytest.mark.parametrize("value", [{1, 2}, object(), 1 << 63, -(10**5000)], ids=["set", "object", "large", "huge"])
def test_what_no_reader_takes_is_refused(value):
    """As an unreadable observation, never as an exception of the pod's program."""
    source = b"def probe(context):\n    return {'value': context}\n"
    answer = running.run("looks", source, value, 5.0)
    assert (answer["status"], answer["observations"]) == ("unreadable", None)
