"""The registry refuses what breaks the contract and names the culprit."""

from importlib.metadata import EntryPoint

import pytest
from pydantic import BaseModel

from checks.api import Check, Result, passed
from checks.registry import GROUP, Registry, load_file
from grader_service.errors import ConfigurationError
from grader_service.model.base import Wire


class Nothing(Wire):
    """No fields."""


class Loose(BaseModel):
    """Allows unknown fields, which the contract forbids."""


class GoodCheck(Check[Nothing, Nothing]):
    """Meets the contract."""

    id = "good"
    version = "1.0.0"
    title = "Good"
    needs = frozenset()
    params_model = Nothing
    observation_model = Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params) -> Result:
        return passed("fine")


class OldCheck(GoodCheck):
    id = "old"
    api_version = 2


class LooseCheck(GoodCheck):
    id = "loose"
    observation_model = Loose


class AskingCheck(GoodCheck):
    id = "asking"
    second_opinion = "x" * 4001


class VagueCheck(GoodCheck):
    id = "vague"
    version = "1"


class UnsaidCheck(GoodCheck):
    id = "unsaid"
    second_opinion = None
    probes = None


class SpelledCheck(GoodCheck):
    id = "spelled"
    probes = "order"


class LoudCheck(GoodCheck):
    id = "Loud"


class WordyCheck(GoodCheck):
    id = "wordy"
    word = "My Check"


class LocalCheck(GoodCheck):
    id = "größe"


class LongCheck(GoodCheck):
    id = "x" * 78


class Lacking(Check):
    """Says little of itself."""

    id, version = "lacking", "1.0.0"
    observe, judge = GoodCheck.observe, GoodCheck.judge


class Incomplete:
    """Is no check."""

    id = "incomplete"


GOOD, OLD, LOOSE, ASKING, INCOMPLETE = GoodCheck(), OldCheck(), LooseCheck(), AskingCheck(), Incomplete()
LACKING, VAGUE, UNSAID, SPELLED = Lacking(), VagueCheck(), UnsaidCheck(), SpelledCheck()
LOUD, WORDY, LOCAL, LONG = LoudCheck(), WordyCheck(), LocalCheck(), LongCheck()


def registry(*pairs):
    """A registry over entry points of this module."""
    return Registry([EntryPoint(name, f"{__name__}:{value}", GROUP) for name, value in pairs])


def test_a_check_that_meets_the_contract_loads():
    """Its version and origin are known."""
    assert registry(("good", "GOOD")).load("good").check.version == "1.0.0"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("other", "GOOD", "its id is 'good'"),
        ("old", "OLD", "check API"),
        ("loose", "LOOSE", "must forbid unknown fields"),
        ("asking", "ASKING", "second_opinion has 4001 characters; at most 4000"),
        ("incomplete", "INCOMPLETE", "expected a function marked @check"),
        ("lacking", "LACKING", "lacks title, params_model, observation_model"),
        ("vague", "VAGUE", "version must be three numbers with dots, got '1'"),
        ("unsaid", "UNSAID", "second_opinion must be a text, got None; probes must be a tuple of names, got None"),
        ("spelled", "SPELLED", "probes must be a tuple of names, got 'order'"),
        ("Loud", "LOUD", r"the code 'Loud\.ok' cannot stand in a verdict; expected <word>\.<reason> of a-z"),
        ("wordy", "WORDY", r"the code 'My Check\.ok' cannot stand in a verdict"),
        ("größe", "LOCAL", "its id 'größe' is none; expected 1 to 128 characters"),
        ("x" * 78, "LONG", "at most 80 characters in all; give the function another name"),
        ("absent", "ABSENT", "does not load"),
    ],
)
def test_a_broken_check_blocks_with_its_reason(name, value, text):
    """The message says what is wrong."""
    with pytest.raises(ConfigurationError, match=text):
        registry((name, value)).load(name)


def test_two_checks_of_one_name_block_each_other():
    """Nobody guesses which one was meant."""
    with pytest.raises(ConfigurationError, match="uninstall all of them but one"):
        registry(("good", "GOOD"), ("good", "OLD")).load("good")


def test_an_unknown_check_lists_the_known_ones():
    """The message helps to find the typo."""
    with pytest.raises(ConfigurationError, match=r'did you mean "good"\? Installed checks are: good'):
        registry(("good", "GOOD")).load("god")


def test_listing_imports_nothing():
    """A broken plugin can still be listed."""
    assert registry(("absent", "ABSENT")).ids() == ["absent"]


@pytest.mark.parametrize("name", ["Enough", "_enough", "größe"])
def test_a_function_whose_name_no_verdict_can_carry_does_not_load(tmp_path, name):
    """Instead of an error when a submission is graded."""
    text = f"from checks.api import *\n@check(version='1.0.0')\ndef {name}(loaders: Loaders) -> Result:\n"
    (tmp_path / "one.py").write_text(f"{text}    return passed('Yes.')\n")
    with pytest.raises(ConfigurationError, match=r"one\.py breaks the contract: .*expected"):
        load_file(tmp_path / "one.py")


def test_a_named_check_without_an_id_is_told_what_it_lacks(tmp_path):
    """Its id is asked for before anything is known of it."""
    text = "from checks.api import Check\nclass One(Check):\n    observe = judge = None\nCHECK = One()\n"
    (tmp_path / "one.py").write_text(text)
    with pytest.raises(ConfigurationError, match="lacks id, version, title"):
        load_file(tmp_path / "one.py")


@pytest.mark.parametrize("changes", [{"code": "Few"}, {"code": "f" * 78}, {"code": "good.Few"}, {"score": 7.0}])
def test_a_result_that_no_verdict_can_carry_is_refused(changes):
    """However it was made; the whole code counts."""
    with pytest.raises(TypeError, match=r"no result for a verdict: (code|score)"):
        GOOD.whole(passed("fine").model_copy(update=changes))
    assert GOOD.whole(passed("fine", code="f" * 75)).code == f"good.{'f' * 75}"
