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


def test_what_a_probe_raises_has_its_line():
    """With the source of it, from the probe's own first line on; a probe that is no Python as well."""
    source = b"def probe(context):\n    return helped(context)\n\n\ndef helped(context):\n    return 1 / context\n"
    answer = running.run("looks", source, 0, 5.0)
    assert (answer["status"], answer["text"]) == ("raised", "ZeroDivisionError: division by zero")
    assert answer["traceback"].startswith(
        'Traceback (most recent call last):\n  File "<probe looks>", line 2, in probe\n'
    )
    assert "line 6, in helped\n    return 1 / context" in answer["traceback"]
    assert 'File "<probe looks>", line 1' in running.run("looks", b"def probe(:", 0, 5.0)["traceback"]


def test_an_exception_that_cannot_be_told_is_one_all_the_same():
    """Its text may raise, or never end; the probe's time is bounded in any case."""
    source = (
        b"class Hostile(Exception):\n"
        b"    def __str__(self):\n"
        b"        while True:\n"
        b"            pass\n"
        b"def probe(context):\n"
        b"    raise Hostile\n"
    )
    answer = running.run("looks", source, None, 0.2)
    assert (answer["status"], answer["observations"]) == ("raised", None)
    assert "whose text cannot be read" in answer["text"]


@pytest.mark.parametrize(
    ("lines", "printed"),
    [
        ("print('seen', 3); import sys; print('odd', file=sys.stderr); return {}", "seen 3\nodd\n"),
        ("print('before'); 1 / 0", "before\n"),
        ("print('x' * 9000 + 'the end'); return {}", "the end\n"),
        ("print('\\udce9'); return {}", "?\n"),
        ("return {}", ""),
    ],
    ids=["both streams", "raised", "long", "no UTF-8", "nothing"],
)
def test_what_a_probe_prints_is_kept_for_its_author(lines, printed, capsys):
    """The last of it, whatever became of the probe; nothing comes to where the pod itself writes."""
    answer = running.run("looks", f"def probe(context):\n    {lines}\n".encode("utf-8", "surrogatepass"), None, 5.0)
    assert answer["printed"].endswith(printed)
    assert bool(answer["printed"]) is bool(printed)
    assert len(answer["printed"]) <= 4096
    assert capsys.readouterr() == ("", "")
