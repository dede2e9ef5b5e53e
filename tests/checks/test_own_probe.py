"""A probe in a check's own file: what of the file is carried, and that it runs there without the grader."""

import importlib
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


IMPORTS = "from checks.api import GraphProbe, LearnerProbe, Observation, check, missing, probe\n"
SEEN = "class Seen(Observation):\n    found: str = ''\n"
MARK = '@probe(version="1.0.0")\n'


def made(tmp_path, text, name="looks"):
    """A probe of a file that begins with our imports and a class `Seen`, as it stands there."""
    path = tmp_path / "written.py"
    path.write_text(IMPORTS + SEEN + text)
    namespace = {"__name__": "written"}
    exec(compile(path.read_text(), str(path), "exec"), namespace)  # noqa: S102 - a file that the test wrote
    return namespace[name]


def probing(body, before="", after=""):
    """The text of a probe with this body between other statements."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{before}\n{MARK}def looks(context: LearnerProbe) -> Seen:\n{lines}\n{after}\n"


def both(one):
    """What the author's own call returns, and what a pod observes."""
    told = running.run(one.file.id, one.file.source, Context(), 10.0)
    return one(Context()).model_dump(), told["observations"] or told


@pytest.mark.parametrize(
    "body",
    [
        "answers = 1\nreturn Seen(found=str(answers))",
        "return Seen(found=str([answers for answers in 'ab']))",
        "return Seen(found=str((lambda answers: answers)(1)))",
        "class Own:\n    answers = 1\n    other = answers\nreturn Seen(found=str(Own.other))",
        "def inner(answers):\n    return lambda: answers\nreturn Seen(found=str(inner(answers=2)()))",
    ],
)
def test_what_only_the_check_uses_stays_here(body, tmp_path):
    """A local name is not the constant of that name, so that no answers reach a learner's process."""
    one = made(tmp_path, probing(body, before='answers = {"q1": "SECRET-1"}'))
    assert "SECRET" not in one.file.source.decode()
    mine, theirs = both(one)
    assert mine == theirs


def test_a_local_name_may_be_that_of_an_import(tmp_path):
    """`missing` is a function of ours above, and a list here."""
    mine, theirs = both(made(tmp_path, probing("missing = [1]\nreturn Seen(found=str(missing))")))
    assert mine == theirs == {"found": "[1]"}


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ("LIMIT = 10\nLIMIT += 5", "LIMIT"),
        ('TABLE = {}\nTABLE["a"] = 1', "TABLE"),
        ('TABLE = {"a": {}}\nTABLE["a"]["b"], LAST = 1, 2', "TABLE"),
        ("from types import SimpleNamespace\nheld = SimpleNamespace()\nheld.size = 4", "held.size"),
        ("LIMIT: int\nLIMIT = 4", "LIMIT"),
        ("FIRST = 1\nNEXT = FIRST\nFIRST = 5", "(FIRST, NEXT)"),
        ("import xml.dom\nimport xml.sax", "(xml.dom.__name__, xml.sax.__name__)"),
        ("SIZE = 2\nclass Own:\n    size = SIZE\n    double = size * 2", "Own.double"),
        ("from functools import lru_cache\n@lru_cache(maxsize=8)\ndef slow(): return object()", "slow() is slow()"),
        ("def twice(f):\n    return lambda: 2 * f()\n@twice\ndef one(): return 1", "one()"),
        ("SIZE = 2\ndef least(of=SIZE): return of", "least()"),
        ("LIMIT = 3\nif __name__ == '__main__':\n    LIMIT = 4\n    print(LIMIT)", "LIMIT"),
        ('TEXT = """a\n\n\x0c  b"""\nNEXT = "\u2028"  # \u2028 \x0c', "TEXT + NEXT"),
    ],
)
def test_it_is_the_program_that_its_author_tries(before, value, tmp_path):
    """What a pod observes is what the author's own call returns."""
    mine, theirs = both(made(tmp_path, probing(f"return Seen(found=repr({value}))", before=before)))
    assert mine == theirs


def test_other_ends_of_lines_move_nothing(tmp_path):
    """A form feed and U+2028 end no line of Python's; what is carried stays at its line."""
    one = made(tmp_path, probing("return Seen(found=str(1 / len(context.names)))", before="# \x0c \u2028 \x85\nX = 1"))
    line = one.function.__code__.co_firstlineno
    assert one.file.source.decode().split("\n")[line].startswith("def looks")


USES = "return Seen(found=str(TABLE))"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (probing(USES, before="TABLE = []\nTABLE.append(1)"), "uses TABLE, which line 5 may change"),
        (probing(USES, before="TABLE = []", after="for one in 'ab':\n    TABLE += one"), "uses TABLE, which line "),
        (probing(USES, before="try:\n    TABLE = 1\nexcept OSError:\n    TABLE = 2"), "uses TABLE, which line 4 may"),
        (probing(USES, before="with open('/dev/null') as TABLE:\n    pass"), "uses TABLE, which line 4 may change"),
        (probing(USES, before="TABLE = 1\ndel TABLE"), "uses TABLE, which line 5 may change"),
        (probing(USES, before="TABLE = 1; SECRET = 2"), "uses a part of line 4; expected one statement on a line"),
        (probing("return VERSION", before="VERSION = 3"), "uses the name VERSION, which the file of a probe needs"),
        (probing("return helps()", before="SITE = 3\ndef helps(): return SITE"), "uses the name SITE"),
        (probing("return Seen()").replace("looks", "probe"), "probe probe uses the name probe"),
        (
            f"def factory():\n    {MARK}    def looks(context: GraphProbe) -> Seen:\n        return Seen()\nfactory()",
            "is not made by one `def` at the top level",
        ),
        (probing("return Seen()") * 2, "is not made by one `def` at the top level"),
        (
            "from functools import lru_cache\n" + probing("return Seen()").replace(MARK, MARK + "@lru_cache\n"),
            "has another decorator below @probe",
        ),
        (
            "def same(made): return made\n" + probing("return Seen()").replace(MARK, "@same\n" + MARK),
            "has another decorator beside @probe",
        ),
        (
            probing("return Own()", before="from dataclasses import dataclass\n@dataclass\nclass Own:\n    size: int"),
            "uses the decorated class Own",
        ),
    ],
)
def test_what_would_be_another_program_is_refused(text, refused, tmp_path):
    """With the name and the line."""
    with pytest.raises(TypeError, match=refused):
        made(tmp_path, text)


def test_a_relative_import_is_none_of_a_pods(tmp_path, monkeypatch):
    """Its package is not there."""
    package = tmp_path / "of_probes"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "words.py").write_text("WORD = 1\n")
    (package / "check.py").write_text(IMPORTS + SEEN + probing("return WORD", before="from .words import WORD"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TypeError, match="uses WORD, which no pod has"):
        importlib.import_module("of_probes.check")


def test_its_digest_is_that_of_its_program(tmp_path):
    """The same where it moved, another where a blank line in one of its texts was written or taken away."""
    body = 'text = """a{}b"""\nreturn Seen(found=text)'
    same = [made(tmp_path, probing(body.format("\n\n"), before="\n" * count)).file for count in (0, 5)]
    other = made(tmp_path, probing(body.format("\n"))).file
    assert same[0].sha256 != same[1].sha256
    assert same[0].lines_sha256 == same[1].lines_sha256 != other.lines_sha256
