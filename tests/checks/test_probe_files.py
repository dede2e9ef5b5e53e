"""Probes are found and read as files; nothing of a plugin runs for that, and what is wrong with one is said."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from checks.probe_files import GROUP, MAX_SOURCE, ProbeFiles, read_probe_file
from grader_service.errors import ConfigurationError
from grader_service.model.evidence import ProbeSite
from grader_service.plugins.located import module_file

GOOD = '''"""Says one."""

PROBE_API = 1
VERSION = "1.2.3"
SITE = "graph"
BUDGET_S = 12.5


def probe(context):
    return {"one": 1}
'''


def point(name: str, module: str) -> EntryPoint:
    return EntryPoint(name=name, value=module, group=GROUP)


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A package whose import would be noticed, with a probe in a subpackage."""
    package = tmp_path / "noticed_plugin"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('the plugin was imported')\n")
    (package / "inner" / "__init__.py").write_text("raise RuntimeError('the subpackage was imported')\n")
    (package / "inner" / "looks.py").write_text(GOOD)
    monkeypatch.syspath_prepend(tmp_path)
    return package


def test_a_probe_is_found_without_importing_its_package(plugin):
    """Its parents would raise on import."""
    probe = ProbeFiles([point("looks", "noticed_plugin.inner.looks")]).load("looks")
    assert (probe.version, probe.site, probe.budget_s) == ("1.2.3", ProbeSite.GRAPH, 12.5)
    assert probe.source.decode() == GOOD
    assert not [name for name in sys.modules if name.startswith("noticed_plugin")]


def test_a_probe_beside_a_check_hides_an_installed_one(plugin, tmp_path):
    """So that an author tries the file that is being edited."""
    (tmp_path / "looks.py").write_text(GOOD.replace("1.2.3", "2.0.0"))
    files = ProbeFiles([point("looks", "noticed_plugin.inner.looks")], folders=[tmp_path])
    assert files.load("looks").version == "2.0.0"


def test_every_built_in_probe_can_be_read():
    """What the project declares is there and is a probe."""
    files = ProbeFiles()
    installed = files._declared.names()
    assert installed
    for probe_id in installed:
        assert files.load(probe_id).source


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], "no probe 'looks' is installed"),
        ([point("looks", "noticed_plugin.inner.looks")] * 2, "uninstall all of them but one"),
        ([point("looks", "noticed_plugin.missing")], "no file of that name is installed"),
        ([point("looks", "noticed_plugin.inner.looks.deeper")], "no file of that name is installed"),
        ([point("looks", "no_such_package.at_all")], "no file of that name is installed"),
        ([point("looks", "math")], "no file of that name is installed"),
    ],
)
def test_what_cannot_be_found_is_said(plugin, points, message):
    """With what to do, where something can be done."""
    with pytest.raises(ConfigurationError, match=message):
        ProbeFiles(points).load("looks")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (GOOD.replace("VERSION", "REVISION"), "lacks the constant VERSION"),
        (GOOD.replace("PROBE_API = 1", "PROBE_API = 2"), "written for probe API 2, this grader has 1"),
        (GOOD.replace('"1.2.3"', '"1.2"'), "three numbers with dots, got '1.2'"),
        (GOOD.replace('"1.2.3"', '"1.2.x"'), "three numbers with dots"),
        (GOOD.replace('"graph"', '"host"'), "SITE must be one of learner, graph, got 'host'"),
        (GOOD.replace("12.5", "True"), "BUDGET_S must be seconds"),
        (GOOD.replace("12.5", "601"), "at most 600, got 601"),
        (GOOD.replace("12.5", "2 * 6"), "lacks the constant BUDGET_S"),
        (GOOD.replace("def probe", "def prob"), "does not define a function `probe"),
        ("def broken(:", "cannot be read"),
        ("x = '\0'", "cannot be read"),
        (GOOD + "#" * MAX_SOURCE, "at most 65536 are carried"),
    ],
)
def test_what_is_no_probe_is_refused(tmp_path, source, message):
    """In the words of what was expected and what came."""
    path = tmp_path / "looks.py"
    path.write_text(source)
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_probe_file("looks", path, "plugin 1.0")
    assert "plugin 1.0" in str(caught.value)


def test_modules_are_found_where_python_would_find_them():
    """Packages, plain modules and nothing, as the import system has it."""
    assert module_file("json.decoder") == Path(sys.modules["json"].__file__).parent / "decoder.py"
    assert module_file("json.nothing") is None
    assert module_file("sys") is None
