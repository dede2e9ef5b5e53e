"""`docs/writing-checks.md` teaches what is true: its files and commands are run, its tables are those of the code."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from checks import api
from checks.api import ACCEPTED_VERSIONS
from checks.authoring import report
from checks.authoring.material import Controls, Recorded
from grader_service.authoring import pytest_plugin
from grader_service.model.evidence import Evidence, Need
from grader_service.model.feedback import Advice, Feedback, NextStep
from tests.authoring.conftest import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "writing-checks.md").read_text()
UNMARKED = [found[1:] for found in re.findall(r"(<!-- .*? -->\n)?```(\w+)\n(.*?)```", PAGE, re.DOTALL) if not found[0]]
"""(language, text) of each block of code without a mark, which nothing below runs."""
_PARTS = re.compile(r"<!-- (run|file: (?P<file>[\w.]+)) -->\n```\w+\n(?P<text>.*?)```\n", re.DOTALL)


def commands(block):
    """(command, expected lines) of a console block."""
    found = []
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
            found.append((command, []))
        elif line.strip():
            found[-1][1].append(line.strip())
    return found


@pytest.mark.integration
def test_a_new_author_gets_a_running_check_by_following_the_page(clean_place, tmp_path):
    """In an empty folder with an empty home, every command does what the page says, in its order."""
    folder = tmp_path / "work"
    folder.mkdir()
    ran = 0
    for part in _PARTS.finditer(PAGE):
        if part["file"]:
            (folder / part["file"]).write_text(part["text"])
            continue
        for command, expected in commands(part["text"]):
            if command.startswith("cd "):
                folder = folder / command[3:]
                assert folder.is_dir()
                continue
            shown = re.sub(r"\s+", " ", clean_place.run(command, folder).stdout)
            for line in expected:
                pattern = r"\s*".join(re.escape(word) for word in re.sub(r"\s+", " ", line).split(" "))
                assert re.search(pattern.replace("…", ".*?"), shown), f"{command}: {line!r} is not in\n{shown}"
            ran += 1
    assert ran >= 10
    assert not (clean_place.home / ".local").exists(), "nothing is written to the author's home"


def test_every_block_is_run_or_checked():
    """Without a mark there are `controls.toml` and `observations.jsonl`, which their models take, and a lab's TOML."""
    assert [language for language, _ in UNMARKED] == ["toml", "json", "toml"]
    controls, observation, lab = (text for _, text in UNMARKED)
    assert Controls.model_validate(tomllib.loads(controls)).control[0].params == {"least": 8}
    assert Recorded.model_validate_json(observation).name == "no loader"
    assert "grader.labs" in tomllib.loads(lab)["project"]["entry-points"]


def section(title):
    """A section's text."""
    return re.split(r"\n#{2,3} ", PAGE.split(f"# {title}", 1)[1], maxsplit=1)[0]


def first_cells(text):
    """The names in the first column of the tables in a text."""
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)", row)}


def test_the_attributes_of_a_check_are_listed():
    """The table has every part of the protocol, what a check may have besides, and no other."""
    optional = {"probes", "codes", "names", "second_opinion"}
    fields = {*api.Check.__annotations__, "observe", "judge", *optional}
    result = set(api.CheckResult.model_fields)
    assert first_cells(section("The check\n")) - {"checks"} == fields | result


def test_the_parts_of_feedback_are_listed():
    """The table has each part, and no other; what it shows of the further models can be built."""
    text = section("What a learner reads")
    assert first_cells(text) == set(Feedback.model_fields)
    for name, model in (("NextStep", NextStep), ("Advice", Advice)):
        (shown,) = re.findall(rf"`{name}\((.*?)\)`", text)
        assert set(re.findall(r"(\w+)=", shown)) == set(model.model_fields)


def test_needs_and_parts_of_evidence_are_listed():
    """Each need and each part stands in the text."""
    assert first_cells(section("Evidence, and what it is worth")) == set(Evidence.model_fields) - {"schema_id"}
    for need in Need:
        assert f"`{need.name}`" in PAGE


def test_versions_are_those_that_are_served():
    """The page says which API versions this grader takes."""
    assert f"serves {' and '.join(map(str, ACCEPTED_VERSIONS))}" in PAGE


def test_properties_are_those_of_the_suite():
    """Every property that the suite can name is explained, and no other."""
    source = "".join(
        path.read_text()
        for folder in ("checks/authoring", "grader_service/authoring")
        for path in sorted((ROOT / folder).glob("*.py"))
    )
    words = "|".join(name for name in ("passed", "failed", "skipped", "advice") if callable(getattr(report, name)))
    named = set(re.findall(rf"\b(?:{words})\(\s*\"(\w+)\"", source)) | {"missing", "hostile", "version", "controls"}
    assert first_cells(section("`grader checks test")) == named


def test_fixtures_are_those_of_the_plugin():
    """Every public fixture is explained."""
    fixtures = {name for name in dir(pytest_plugin) if hasattr(getattr(pytest_plugin, name), "_fixture_function")}
    assert first_cells(section("Fixtures for pytest")) == fixtures - {"grader_process_runner"}


def test_names_of_contexts_are_those_of_the_guest():
    """Each name that a probe may use is defined in the guest's modules."""
    guest = ROOT / "sandbox" / "guest" / "probes"
    names = ("graph_context.py", "graph_run.py", "learner_context.py")
    source = "".join(Path(guest, name).read_text() for name in names)
    named = set(re.findall(r"`(?:context|graph|run)\.(\w+)", section("Probes")))
    assert named
    for name in named:
        assert re.search(rf"(self\.{name}\b|def {name}\b|    {name}:)", source), name


def test_helpers_are_importable():
    """Each call in the table of usual endings exists under that name."""
    for module, name in re.findall(r"^\| `([\w.]+)\.(\w+)\(", section("The check\n"), re.MULTILINE):
        assert callable(getattr(importlib.import_module(module), name))
