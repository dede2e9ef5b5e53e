"""The pages for authors teach what is true: files, commands and recipes are run, tables are those of the code."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from checks.api import Check
from checks.arguments import WHOLE
from checks.authoring import report
from checks.authoring.evidence import EvidenceBuilder
from checks.authoring.material import Controls, Recorded
from checks.contexts import AnyProbe, CarriedGraph, GraphProbe, GraphRun, LearnerProbe
from checks.contract import API_VERSION
from checks.registry import load_file
from grader_service.authoring import pytest_plugin
from grader_service.authoring.conformance import conform
from grader_service.model.evidence import Need
from grader_service.model.feedback import Advice, Feedback
from grader_service.run.progress import Silent
from tests.authoring.conftest import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "writing-checks.md").read_text()
CONTRACT = (ROOT / "docs" / "check-contract.md").read_text()
_PARTS = re.compile(r"<!-- (run|file: (?P<file>[\w.]+)) -->\n```\w+\n(?P<text>.*?)```\n", re.DOTALL)
_LONGEST = 200
"""Lines of the page."""


def unmarked(page):
    """(language, text) of each block of code without a mark, which nothing below runs."""
    found = re.findall(r"(<!-- .*? -->\n)?```(\w+)\n(.*?)```", page, re.DOTALL)
    return [(language, text) for mark, language, text in found if not mark]


def commands(block):
    """(command, expected lines) of a console block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip():
            found[-1][1].append(line.strip())
    return found


@pytest.mark.integration
def test_a_new_author_gets_a_running_check_by_following_the_page(clean_place, tmp_path):
    """In an empty folder with an empty home, every command does what the page says, in its order."""
    ran = 0
    for part in _PARTS.finditer(PAGE):
        if part["file"]:
            (tmp_path / part["file"]).write_text(part["text"])
            continue
        for command, expected in commands(part["text"]):
            shown = re.sub(r"\s+", " ", clean_place.run(command, tmp_path).stdout)
            for line in expected:
                pattern = r"\s*".join(re.escape(word) for word in re.sub(r"\s+", " ", line).split(" "))
                assert re.search(pattern.replace("…", ".*?"), shown), f"{command}: {line!r} is not in\n{shown}"
            ran += 1
    assert ran >= 7
    assert not (clean_place.home / ".local").exists(), "nothing is written to the author's home"


def test_the_page_is_short():
    """Who wants a first check reads it at once; details stand on the other page."""
    assert len(PAGE.splitlines()) <= _LONGEST


def recipes():
    """Name → file of each recipe, as an author would write it."""
    (block,) = re.findall(r"<!-- fmt: off -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    header, *parts = re.split(r"\n\n(?=def |class )", block)
    files = {}
    for part in parts:
        before, start, rest = (
            part.rpartition("\ndef ") if part.startswith("class") else ("", "def ", part[len("def ") :])
        )
        name = rest.partition("(")[0]
        files[name] = (
            f'{header}\n\n\n{before}\n\n\n@check(version="1.0.0"){start if before else chr(10) + start}{rest}\n'
        )
    return files


RECIPES = recipes()


def test_there_are_ten_recipes():
    """Ordinary checks, over most kinds of evidence."""
    assert len(RECIPES) == 10


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_a_check(tmp_path, name):
    """It loads under its name and keeps what the suite asks for, and says what it cannot detect or is told to."""
    path = tmp_path / f"{name}.py"
    path.write_text(RECIPES[name])
    assert load_file(path).check.id == name
    found = conform(f"file:{path}", accept=False, controls=False, progress=Silent())
    problems = [one for one in found.properties if one.status == "failed"]
    assert problems == []


def test_every_block_is_run_or_checked():
    """Without a mark there are commands of installing, material for tests, and a lab's entry point."""
    assert [language for language, _ in unmarked(PAGE)] == ["console"]
    assert [language for language, _ in unmarked(CONTRACT)] == ["toml", "json", "toml"]
    controls, observation, lab = (text for _, text in unmarked(CONTRACT))
    assert Controls.model_validate(tomllib.loads(controls)).control[0].params == {"least": 8}
    assert Recorded.model_validate_json(observation).name == "no loader"
    assert "grader.labs" in tomllib.loads(lab)["project"]["entry-points"]


def section(title, page=CONTRACT):
    """A section's text."""
    return re.split(r"\n#{2,3} ", page.split(f"# {title}", 1)[1], maxsplit=1)[0]


def first_cells(text):
    """The names in the first column of the tables in a text."""
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)", row)}


def test_examples_of_evidence_are_those_of_the_builder():
    """Each type of an argument stands in the table, with what it holds in a run that went well."""
    evidence = EvidenceBuilder().build()
    seen = {
        "loaders": evidence.discovery.loaders, "pipelines": evidence.discovery.pipelines,
        "names": evidence.discovery.defined, "discovery": evidence.discovery, "dataset": evidence.scan,
        "graph": evidence.clean_room.graph, "batch": evidence.clean_room.batch, "room": evidence.clean_room,
        "measurement": evidence.measurement, "run": evidence.run,
    }  # fmt: skip
    text = section("Evidence: what an argument may be", PAGE)
    examples = re.findall(r"`([a-z][\w.\[\]]+)` is `([^`]+)`", text)
    for expression, value in examples:
        assert repr(eval(expression, {}, seen)) == value, expression  # noqa: S307 - of our own page
    assert {re.match(r"\w+", expression)[0] for expression, _ in examples} == set(seen)
    named = {
        "Loaders",
        "Pipelines",
        "Names",
        "Graph",
        "Batch",
        "Dataset",
        "Run",
        "Discovery",
        "CleanRoom",
        "Measurement",
    }
    assert first_cells(text) == named
    assert {kind.__name__ for kind in WHOLE} - {"Scan", "RunRecord"} <= named


def test_the_members_of_a_check_are_listed():
    """The table has every part of the contract, and no other."""
    members = {name for name in {**Check.__annotations__, **vars(Check)} if not name.startswith("_")}
    assert first_cells(section("A check as a class")) == members
    assert f"this grader serves {API_VERSION}" in CONTRACT


def test_results_and_feedback_are_listed():
    """The tables have each field and each part, and no other; what they show of advice can be built."""
    results, feedback = section("Results").split("**Feedback**")
    assert first_cells(results) == {"outcome", "code", "score", "parts", "details", "tier"}
    parts, endings = feedback.split("**The usual endings.**")
    assert first_cells(parts) == set(Feedback.model_fields)
    (shown,) = re.findall(r"`Advice\((.*?)\)`", parts)
    assert set(re.findall(r"(\w+)=", shown)) == set(Advice.model_fields)
    calls = re.findall(r"^\| `([\w.]+)\.(\w+)\(", endings, re.MULTILINE)
    assert len(calls) == 6
    for module, name in calls:
        assert callable(getattr(importlib.import_module(module), name))
    for need in Need:
        assert f"`{need.name}`" in CONTRACT or f"`Need.{need.name}`" in CONTRACT


def test_properties_are_those_of_the_suite():
    """Every property that the suite can name is explained, and no other."""
    source = "".join(
        path.read_text()
        for folder in ("checks/authoring", "grader_service/authoring")
        for path in sorted((ROOT / folder).glob("*.py"))
    )
    words = "|".join(name for name in ("passed", "failed", "skipped", "advice") if callable(getattr(report, name)))
    named = set(re.findall(rf"\b(?:{words})\(\s*\"(\w+)\"", source)) | {"missing", "hostile", "version", "controls"}
    assert first_cells(section("The conformance suite")) == named


def test_fixtures_are_those_of_the_plugin():
    """Every public fixture is explained."""
    fixtures = {name for name in dir(pytest_plugin) if hasattr(getattr(pytest_plugin, name), "_fixture_function")}
    assert first_cells(section("Fixtures for pytest")) == fixtures - {"grader_process_runner"}


def test_names_of_contexts_are_those_of_the_guest():
    """Each name that a probe may use is typed for authors, and defined in the guest's modules; all are listed."""
    guest = ROOT / "sandbox" / "guest"
    names = ("probes/running.py", "trusted/graph_context.py", "trusted/graph_run.py", "learner/probe_context.py")
    source = "".join(Path(guest, name).read_text() for name in names)
    named = set(re.findall(r"`(?:context|graph|run)\.(\w+)", section("Probes")))
    typed = {
        name
        for one in (AnyProbe, GraphProbe, CarriedGraph, GraphRun, LearnerProbe)
        for name in {**one.__annotations__, **vars(one)}
        if not name.startswith("_")
    }
    assert named == typed
    for name in named:
        assert re.search(rf"(self\.{name}\b|def {name}\b|    {name}:)", source), name
