"""Documents that cannot drift: published schemas, settings, commands and examples are those of the code."""

import re

import pytest

from bench.checks_page import page
from checks.registry import Registry
from grader_service.cli.schema import MODELS, schema_text
from grader_service.settings import Settings
from tests.levels.parts import ROOT


@pytest.mark.parametrize("document", MODELS)
def test_published_schemas_are_current(document):
    """`docs/schema/` holds what the models say; `make schemas` writes it."""
    assert (ROOT / "docs" / "schema" / f"{document}.json").read_text() == schema_text(document)


def test_every_setting_is_documented():
    """The page of settings names each `GRADER_` variable, and no other; the README names some of them."""
    text = (ROOT / "docs" / "settings.md").read_text() + (ROOT / "README.md").read_text()
    named = set(re.findall(r"`GRADER_([A-Z_]+)`", text))
    assert named - {"DATA_DIR"} == {name.upper() for name in Settings.model_fields}


def test_every_code_of_the_failing_examples_is_documented():
    """The table of examples lists every file."""
    table = (ROOT / "examples" / "README.md").read_text()
    for path in sorted((ROOT / "examples" / "failing").glob("*.py")):
        assert f"`{path.name}`" in table


def test_every_check_says_what_it_cannot_detect():
    """A judge's docstring states points, errors and limits."""
    registry = Registry()
    for check_id in registry.ids():
        text = registry.load(check_id).check.about
        for word in ("Points:", "Cannot detect:"):
            assert word in text, f"{check_id} lacks {word!r}"


def test_the_page_of_checks_is_current():
    """`docs/checks.md` holds what the checks say of themselves; `make pages` writes it."""
    assert (ROOT / "docs" / "checks.md").read_text() == page()


def test_the_page_of_platforms_shows_the_files():
    """Each program on it is a file of `examples/platforms`, which tests run; each of those files is named."""
    text = (ROOT / "docs" / "platforms.md").read_text()
    shown = re.findall(r"\[(examples/platforms/[^]]+)\]\([^)]+\).*?```\w+\n(.*?)```", text, re.DOTALL)
    assert len(shown) == text.count("\n```") / 2
    for name, program in shown:
        assert (ROOT / name).read_text() == program, name
    files = [path for path in (ROOT / "examples" / "platforms").rglob("*.*") if "node_modules" not in path.parts]
    for path in files:
        assert path.suffix not in {".py", ".js", ".php"} or f"(../{path.relative_to(ROOT)})" in text, path


def test_modules_stay_small():
    """No file of ours has more than 400 lines."""
    for package in ("grader_service", "sandbox", "checks", "images"):
        for path in (ROOT / package).rglob("*.py"):
            lines = len(path.read_text().splitlines())
            assert lines <= 400, f"{path.relative_to(ROOT)} has {lines} lines"
