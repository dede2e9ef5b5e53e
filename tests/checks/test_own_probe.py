"""A probe in a check's own file: what of the file is carried, and that it runs there without the grader."""

import math
import sys
from typing import Annotated

import pytest
from pydantic import Field

from checks.api import GraphProbe, LearnerProbe, Observation, Result, passed, probe
from grader_service.errors import ConfigurationError
from grader_service.model.evidence import ProbeSite
from sandbox.guest.probes import running

LIMIT: int = 3
HELD = ("a", "b")


class Inner(Observation):
    """A part of an observation."""

    text: str = "none"


class Seen(Observation):
    """Bounded."""

    count: Annotated[int, Field(ge=0, le=100)]
    inner: tuple[Inner, ...] = ()


def _most(values: list[int]) -> int:
    return min(LIMIT, *values) + math.floor(0.5)


def _unused() -> None:
    raise AssertionError


@probe(version="1.2.0", budget_s=10)
def looks(context: GraphProbe) -> Seen:
    """Uses a function, a constant, an import and two classes of its module."""
    return Seen(count=_most([len(context.graphs), 50]), inner=[Inner(text=one) for one in HELD])


@probe(version="1.0.0")
def claims(context: LearnerProbe) -> Seen:
    """Looks into the learner's process."""
    return Seen(count=len(context.names))


class Context:
    """As much of a pod's context as these need."""

    graphs = (1, 2)
    names = {"a": 1}  # noqa: RUF012 - nothing changes it


def test_it_says_what_it_is():
    """Name, version, seconds, and the site by the type of its argument."""
    file = looks.file
    assert (file.id, file.version, file.site, file.budget_s) == ("looks", "1.2.0", ProbeSite.GRAPH, 10.0)
    assert claims.file.site is ProbeSite.LEARNER


def test_what_it_needs_is_carried_and_nothing_else():
    """No other function, and no class of the grader."""
    text = looks.file.source.decode()
    for needed in ("def _most", "LIMIT: int = 3", "HELD = ", "import math", "def looks"):
        assert needed in text
    for left in ("_unused", "checks.api", "pydantic", "class ", "claims", "@probe"):
        assert left not in text


def test_lines_are_those_of_the_authors_file():
    """So that a traceback names them."""
    line = looks.function.__code__.co_firstlineno + 1
    assert looks.file.source.decode().splitlines()[line - 1].startswith("def looks")


@pytest.mark.parametrize(
    ("one", "seen"),
    [(looks, {"count": 2, "inner": [{"text": "a"}, {"text": "b"}]}), (claims, {"count": 1})],
)
def test_it_runs_without_the_grader(one, seen, monkeypatch):
    """As a pod runs it; what came fits its own class."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("checks", "pydantic")]:
        monkeypatch.setitem(sys.modules, name, None)
    found = running.run(one.file.id, one.file.source, Context(), one.file.budget_s)
    monkeypatch.undo()
    assert found["observations"] == seen, found
    assert one.returns.model_validate(found["observations"])


def test_it_is_called_like_any_function():
    """In an author's own tests."""
    assert looks(Context()).count == 2


def _uses_the_grader(context: GraphProbe) -> Seen:
    return Seen(count=len(str(passed("fine"))))


def _no_context(context: int) -> Seen:
    return Seen(count=0)


def _returns_a_dict(context: GraphProbe) -> dict:
    return {}


def _two(context: GraphProbe, other: GraphProbe) -> Seen:
    return Seen(count=0)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_uses_the_grader, "uses passed, which no pod has"),
        (_no_context, "expects one argument, of the type GraphProbe or LearnerProbe"),
        (_two, "expects one argument"),
        (_returns_a_dict, "expected a class made from Observation"),
    ],
)
def test_what_is_no_probe_is_refused_at_once(function, text):
    """With what was expected."""
    with pytest.raises(TypeError, match=text):
        probe(version="1.0.0")(function)


@pytest.mark.parametrize(("version", "budget_s"), [("1", 30.0), ("1.0.0", 0), ("1.0.0", 601)])
def test_its_version_and_seconds_are_checked(version, budget_s):
    """As those of a probe in a file of its own."""
    with pytest.raises(ConfigurationError, match="is no probe"):
        probe(version=version, budget_s=budget_s)(looks.function)


def test_results_are_no_observations():
    """A probe says what it saw, no opinions."""

    def judges(context: GraphProbe) -> Result:
        return passed("fine")

    with pytest.raises(TypeError, match="expected a class made from Observation"):
        probe(version="1.0.0")(judges)
