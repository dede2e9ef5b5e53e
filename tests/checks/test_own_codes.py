"""Codes of a check that is a function, as its source returns them."""

import importlib

import pytest

from checks.api import (
    Discovery,
    Feedback,
    Loaders,
    Result,
    absent,
    check,
    failed,
    inconclusive,
    missing,
    passed,
    undecided,
    unverified,
)
from checks.api import failed as wrong
from checks.own_codes import own_codes
from grader_service.model.verdict import Outcome


def _helped(name: str) -> Result:
    if name:
        return unverified("unseen", f"`{name}` could not be seen, so nothing is counted.")
    return inconclusive("noisy", "It is " + "too noisy: nobody knows.")


def _elsewhere() -> Result:
    return failed("elsewhere", "Never.")


def several(loaders: Loaders) -> Result:
    """Answers in many ways."""
    told = Feedback(outcome="It is told in parts.")
    if len(loaders) == 1:
        return _helped(loaders[0].name)
    if len(loaders) == 2:
        return failed("in_parts", Feedback(outcome="It is small.", seen="8"))
    if len(loaders) == 3:
        return wrong(code="renamed", feedback=f"{told.outcome}")
    if len(loaders) == 4:
        return undecided(Outcome.ERROR, "ours", told)
    if len(loaders) == 5:
        return unverified("in_parts", told)
    if len(loaders) == 6:
        return failed("other.whole", "It has its own first word.")
    return passed(told) if loaders else passed("Good.", code="empty")


def named(discovery: Discovery, *, wanted: str = "model") -> Result:
    """Looks for names."""
    if not discovery.defined:
        return missing(absent(discovery, "first_batch"), "a batch")
    if discovery.notes:
        return missing(absent(discovery, "first_batch"), "a batch", code="no_batch")
    return missing(absent(discovery, wanted), "a model", code="no_model")


def computed(loaders: Loaders) -> Result:
    """Its code is not in its source."""
    word = "few" if loaders else "none"
    return failed(word, "Too few.") if len(loaders) < 2 else passed("Enough.")


def test_every_result_declares_its_code():
    """With its meaning, and its outcome where that is no failure."""
    assert own_codes(several, "many")[0] == {
        "many.unseen": "unverified: `…` could not be seen, so nothing is counted",
        "many.noisy": "inconclusive: it is too noisy, nobody knows",
        "many.in_parts": "failed or unverified: it is small",
        "many.renamed": "renamed",
        "many.ours": "error: it is told in parts",
        "other.whole": "it has its own first word",
        "many.ok": "it is told in parts",
        "many.empty": "passed: good",
    }


def test_a_name_that_is_missing_declares_its_code():
    """After the name, or as it is given."""
    assert own_codes(named, "named")[0] == {
        "named.first_batch_missing": "`first_batch` is not defined",
        "named.no_batch": "`first_batch` is not defined",
        "named.no_model": "a name that it needs is not defined",
    }


def test_codes_that_are_computed_are_given():
    """The others are read all the same; a check that does not name them says so."""
    codes = {"few": "there are too few", "none": "there is none"}
    made = check(version="1.0.0", word="many", codes=codes)(computed)
    assert made.codes == {"many.ok": "enough", "many.few": "there are too few", "many.none": "there is none"}
    with pytest.raises(TypeError, match=r"the code of `failed\(word, 'Too few.'\)` is computed"):
        _ = check(version="1.0.0")(computed).codes


def test_a_meaning_may_be_said_better():
    """And a code with a dot is taken as it is."""
    made = check(version="1.0.0", word="many", codes={"in_parts": "it is small", "other.whole": "whole"})(several)
    assert made.codes["many.in_parts"] == "it is small"
    assert made.codes["other.whole"] == "whole"
    assert made.codes["many.noisy"].startswith("inconclusive: ")


def test_functions_of_its_package_are_followed(tmp_path, monkeypatch):
    """Imported by where they are, above and beside the check, or by their whole name."""
    package = tmp_path / "of_codes"
    (package / "deep").mkdir(parents=True)
    for folder in (package, package / "deep"):
        (folder / "__init__.py").touch()
    for name, folder in (("above", package), ("beside", package / "deep"), ("whole", package)):
        text = f'from checks.api import failed\ndef {name}():\n    return failed("{name}", "It is {name} of it all.")\n'
        (folder / f"{name}.py").write_text(text)
    (package / "deep" / "check.py").write_text(
        "from checks.api import Loaders, Result, passed\n"
        "from of_codes.whole import whole\n"
        "from ..above import above\n"
        "from .beside import beside as renamed\n"
        "def judges(loaders: Loaders) -> Result:\n"
        "    named = whole()\n"
        "    return above() or renamed() or named or passed('Good.')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    judges = importlib.import_module("of_codes.deep.check").judges
    assert set(own_codes(judges, "its")[0]) == {"its.above", "its.beside", "its.whole", "its.ok"}


def _noisy() -> Result:
    return failed("noisy", "It is noisy.")


def shadows(loaders: Loaders) -> Result:
    """A local name is no function of the module."""
    _noisy = len(loaders)
    return passed("Good.", numbers={"loaders": _noisy})


def test_a_local_name_brings_no_code():
    """Of the function of that name."""
    assert set(own_codes(shadows, "its")[0]) == {"its.ok"}
