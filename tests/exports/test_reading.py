"""Verdicts are found in any usual file, and everything else is refused with a reason."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader_service.exports.reading import Found, Refused, read
from grader_service.signer.signatures import Signer
from tests.exports.corpus import CORPUS, any_verdicts, as_lines
from tests.report.factories import verdict


def listed(content, keys=()):
    return list(read("f.json", content.encode() if isinstance(content, str) else content, keys))


@pytest.mark.parametrize("name", CORPUS)
def test_a_verdict_reads_back_as_it_was_written(name):
    """Indented, on one line, and with a byte-order mark."""
    item = CORPUS[name]
    for text in (item.model_dump_json(indent=2), item.model_dump_json(), "\ufeff" + item.model_dump_json() + "\n\n"):
        (found,) = listed(text)
        assert isinstance(found, Found)
        assert found.verdict.model_dump(mode="json") == item.model_dump(mode="json")


@settings(max_examples=40, deadline=None)
@given(st.lists(any_verdicts(), min_size=1, max_size=3))
def test_json_lines_read_back_in_order(items):
    """One verdict on each line; text that holds line separators of Unicode does not break a line."""
    assert [found.verdict for found in listed(as_lines(*items))] == items


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))))
def test_any_other_bytes_are_refused_with_a_reason(content):
    """Nothing raises, and the sentence has what was expected, what came and what to do."""
    for found in listed(content):
        assert isinstance(found, Refused)
        assert not found.held_back
        assert "expected a verdict of schema grader.verdict/v1, got " in found.problem
        assert "grader grade --json" in found.problem


@pytest.mark.parametrize(
    ("content", "came"),
    [
        ("", "an empty file"),
        ("hello", "not JSON"),
        ("[1]", "a JSON list"),
        ("{}", "an object without `schema`"),
        ('{"schema": "grader.evidence/v1"}', '"grader.evidence/v1"'),
        ('{"schema": "grader.verdict/v1"}', "verdict_id: Field required"),
        (b"\xff\xfe{}", "not UTF-8"),
        ("[" * 100_000, "nested too deeply"),
        ('{"schema": "grader.verdict/v1", "score": NaN}', "NaN is not a JSON number"),
        ('{"schema": "grader.verdict/v1", "schema": "grader.verdict/v1"}', "a key stands twice"),
    ],
)
def test_the_reason_names_what_came(content, came):
    """Each kind of mistake has its own words."""
    (found,) = listed(content)
    assert isinstance(found, Refused)
    assert came in found.problem


def test_a_bad_line_does_not_hide_the_others():
    """A truncated line is refused by its number, those around it are read."""
    good = as_lines(CORPUS["all_passed"])
    found = listed(good + good[:100] + "\n\n" + good)
    assert [type(item) for item in found] == [Found, Refused, Found]
    assert found[1].source == "f.json, line 2"


def test_a_signature_is_asked_for_by_key(tmp_path):
    """Signed by the key: read. Changed, unsigned, or signed by another: held back, each with its reason."""
    signer, other = Signer.from_folder(tmp_path / "a"), Signer.from_folder(tmp_path / "b")
    signed = signer.sign(verdict(signature=None))
    changed = json.loads(signed.model_dump_json()) | {"score": 49.0}
    for content, keys, problem in (
        (signed.model_dump_json(indent=2), [signer.public_key], None),
        (signed.model_dump_json(), [other.public_key, signer.public_key], None),
        (signed.model_dump_json().replace("50.0", "50"), [signer.public_key], None),
        (json.dumps(changed), [signer.public_key], "the verdict was changed, or was never signed"),
        (verdict(signature=None).model_dump_json(), [signer.public_key], "never signed"),
        (signed.model_dump_json(), [other.public_key], f"signed by another key, {signer.public_key}"),
    ):
        (found,) = listed(content, keys)
        if problem is None:
            assert isinstance(found, Found)
        else:
            assert found.held_back
            assert problem in found.problem
