"""What the words of options select, and how a selection is kept with its batch."""

import json

import pytest

from grader_service.cli.selecting import check_outcomes, check_versions, named
from grader_service.errors import UsageError
from grader_service.model.regrade import Selection
from grader_service.model.verdict import Outcome


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["a"], {"a": ()}),
        (["a=failed"], {"a": (Outcome.FAILED,)}),
        (["a=failed", "a=inconclusive"], {"a": (Outcome.FAILED, Outcome.INCONCLUSIVE)}),
        (["a=failed", "b=passed", "a=failed"], {"a": (Outcome.FAILED,), "b": (Outcome.PASSED,)}),
        (["a=failed", "a"], {"a": ()}),
    ],
    ids=" ".join,
)
def test_outcomes_of_one_check_are_alternatives(texts, found):
    """Given twice, both will do, as with statuses; a check without an outcome may have any."""
    assert check_outcomes(texts) == found
    assert named(checks=check_outcomes(texts)).checks == found


def test_versions_of_one_check_are_alternatives():
    """The same, in the order given."""
    found = check_versions(["a=1.0.0", "b=2.0.0", "a=1.1.0"])
    assert found == {"a": ("1.0.0", "1.1.0"), "b": ("2.0.0",)}
    assert named(check_versions=found).check_versions == found


def test_words_that_name_nothing_are_refused():
    """With what was expected."""
    with pytest.raises(UsageError, match=r"ID=OUTCOME with one of passed, .*got 'a=good'"):
        check_outcomes(["a=failed", "a=good"])
    with pytest.raises(UsageError, match="ID=VERSION, got 'a='"):
        check_versions(["a="])


@pytest.mark.parametrize(
    ("kept", "checks", "versions"),
    [
        pytest.param(
            {"checks": {"a": "failed", "b": None}, "check_versions": {"a": "1.0.0"}},
            {"a": (Outcome.FAILED,), "b": ()},
            {"a": ("1.0.0",)},
            id="of-one",
        ),
        pytest.param(
            {"checks": {"a": ["failed", "error"]}, "check_versions": {"a": ["1.0.0", "1.1.0"]}},
            {"a": (Outcome.FAILED, Outcome.ERROR)},
            {"a": ("1.0.0", "1.1.0")},
            id="of-several",
        ),
    ],
)
def test_a_selection_is_kept_as_it_always_was(kept, checks, versions):
    """Batches of any time can be read; one that asks for single outcomes is written as before several were possible."""
    found = Selection.model_validate_json(json.dumps(kept))
    assert (found.checks, found.check_versions) == (checks, versions)
    written = json.loads(found.model_dump_json())
    assert {name: written[name] for name in kept} == kept
    assert Selection.model_validate_json(found.model_dump_json()) == found
