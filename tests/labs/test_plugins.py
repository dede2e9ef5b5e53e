"""Labs of other distributions are found by metadata and files; no code of theirs runs."""

import json
import subprocess
import sys
from importlib.metadata import distributions
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest

from grader_service.errors import ConfigurationError, UsageError
from grader_service.labs.discovery import GROUP, LabDiscovery
from grader_service.labs.specs import opened, read_lab
from grader_service.plugins.located import package_folders
from tests.command_line import grader
from tests.labs.texts import TOML, YAML

NEVER_IMPORTED = "raise SystemExit('a plugin was imported')\n"


class Site:
    """A folder of installed distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name, declared, files, version="1.0"):
        """A distribution with entry points of labs, and files by their paths."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        rows = "".join(f"{lab_id} = {value}\n" for lab_id, value in declared.items())
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{rows}")
        for path, text in files.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)

    def labs(self):
        """The labs of these distributions, and the grader's own."""
        found = distributions(path=[str(self.folder)])
        return LabDiscovery([point for one in found for point in one.entry_points if point.group == GROUP])

    def grader(self, *arguments):
        """The command line, with these distributions installed."""
        return grader(*arguments, state_dir=self.folder, PYTHONPATH=str(self.folder), COLUMNS="250")


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return Site(tmp_path)


def package(name, **files):
    """The files of a package whose code must not run; `small_toml` becomes `small.toml`."""
    made = {f"{name.replace('.', '/')}/{file.replace('_toml', '.toml').replace('_yaml', '.yaml')}": text
            for file, text in files.items()}  # fmt: skip
    parts = name.split(".")
    return made | {"/".join([*parts[: n + 1], "__init__.py"]): NEVER_IMPORTED for n in range(len(parts))}


@pytest.mark.parametrize(("file", "text"), [("small_toml", TOML), ("small_yaml", YAML)])
def test_a_lab_of_a_plugin_is_read_without_its_code(site, file, text):
    """The package is nested, and each part would end the process if it were imported."""
    site.install("course-labs", {"small": "course_a.inner.labs"}, package("course_a.inner.labs", **{file: text}))
    labs = site.labs()
    assert labs.ids() == ["dali-classification-training", "dali-pipelines", "small"]
    assert labs.origin("small") == "course-labs 1.0"
    assert read_lab(labs.text("small"), "lab small").title == "A small lab"
    assert not [name for name in sys.modules if name.startswith("course_a")]


def test_folders_without_init_files_are_packages_too(site):
    """Authors keep labs in a folder of data, and a namespace may lie in several places."""
    site.install("plain", {"small": "course_b.data.labs"}, {"course_b/data/labs/small.toml": TOML})
    assert read_lab(site.labs().text("small"), "small").id == "small"
    mixed = {"course_c/__init__.py": NEVER_IMPORTED, "course_c/labs/small.toml": TOML}
    site.install("mixed", {"other": "course_c.labs"}, mixed)
    assert package_folders("course_c.labs") == [site.folder / "course_c" / "labs"]


def test_editable_installs_are_found_by_their_own_finders(site, monkeypatch, tmp_path):
    """Some installers add a finder that knows where a package lies, and nothing to the path."""
    elsewhere = tmp_path / "checkout" / "src"
    for path, text in package("course_k.labs", small_toml=TOML).items():
        (elsewhere / path).parent.mkdir(parents=True, exist_ok=True)
        (elsewhere / path).write_text(text)

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "course_k":
                folder = elsewhere / "course_k"
                return spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
            return None

    monkeypatch.setattr(sys, "meta_path", [object(), *sys.meta_path, Finder])
    site.install("editable", {"small": "course_k.labs"}, {})
    assert read_lab(site.labs().text("small"), "small").id == "small"
    assert not [name for name in sys.modules if name.startswith("course_k")]


@pytest.mark.parametrize("name", ["os.path", "no_such_package_here", "json.no_such", "grader_service.__main__"])
def test_modules_and_absent_packages_have_no_folders(name):
    """Nothing is guessed."""
    assert package_folders(name) == []


@pytest.mark.parametrize(
    ("lab_id", "value", "files", "says"),
    [
        ("small", "course_d", {}, "package course_d, which is not installed"),
        ("small", "course_d:LAB", {}, "expected the package in which small.toml lies"),
        ("small", "../../etc", {}, "expected the package in which small.toml lies"),
        ("small", "course_d", {"course_d/__init__.py": ""}, "small with .toml, .yaml, .yml was looked for in /"),
        ("small", "course_d", {"course_d/small.toml": TOML, "course_d/small.yml": YAML}, "has more than one file"),
        ("a b", "course_d", {"course_d/a b.toml": TOML}, "is not an id"),
        ("../x", "course_d", {"course_d/__init__.py": "", "x.toml": TOML}, "is not an id"),
    ],
)
def test_a_wrong_declaration_names_the_distribution(site, lab_id, value, files, says):
    """Whoever made the plugin can mend it from the message."""
    site.install("course-labs", {lab_id: value}, files)
    with pytest.raises(ConfigurationError) as caught:
        site.labs().text(lab_id)
    assert says in str(caught.value)
    assert "course-labs 1.0" in str(caught.value)


def test_a_wrong_file_names_the_distribution_and_the_line(site):
    """So does a file with mistakes, and one whose id is not that of the declaration."""
    site.install("course-labs", {"small": "course_e", "other": "course_e"}, package(
        "course_e", small_toml=TOML.replace("points = 25", "points = 0"), other_toml=TOML))  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"(?s)lab small \(of course-labs 1.0\).*small.toml:12:10: steps"):
        read_lab(site.labs().text("small"), "lab small")
    with pytest.raises(ConfigurationError, match=r'other\.toml:2:6: id: the lab is installed as "other", and its file'):
        read_lab(site.labs().text("other"), "lab other")


def test_two_distributions_block_each_other_and_nobody_else(site):
    """Both are named; the grader's own labs can be taken by nobody."""
    site.install("first", {"small": "course_f"}, package("course_f", small_toml=TOML))
    site.install("second", {"small": "course_g", "fine": "course_g"}, package(
        "course_g", small_toml=TOML, fine_toml=TOML.replace('"small"', '"fine"')), version="2.0")  # fmt: skip
    site.install("third", {"dali-pipelines": "course_g"}, {})
    labs = site.labs()
    with pytest.raises(ConfigurationError, match=r"'small' is declared by first 1.0, second 2.0; take all of them"):
        labs.text("small")
    with pytest.raises(ConfigurationError, match=r"declared by grader-service .*, third 1.0"):
        labs.text("dali-pipelines")
    assert read_lab(labs.text("fine"), "fine").id == "fine"
    with pytest.raises(UsageError, match="labs are: dali-classification-training, dali-pipelines, fine, small"):
        labs.text("nope")


def test_the_command_line_lists_broken_labs_beside_the_others(site):
    """One broken plugin blocks nothing but itself; the exit code says that something is broken."""
    site.install(
        "good-labs", {"small": "course_h"}, package("course_h", small_yaml=YAML + "summary: |\n  About *JPEGs*.\n")
    )
    site.install("bad-labs", {"worse": "course_i"}, package(
        "course_i", worse_toml=TOML.replace('"small"', '"worse"').replace("jpeg_dataset", "jpeg_dataxet")))  # fmt: skip
    done = site.grader("labs", "list")
    rows = {row.split()[0]: row for row in done.stdout.splitlines()}
    assert done.returncode == 2
    assert rows["small"].rstrip().endswith("good-labs 1.0")
    assert "jpeg_dataset, throughput_ratio" in rows["small"]
    assert "does not load" in rows["worse"]
    assert rows["worse"].rstrip().endswith("bad-labs 1.0")
    assert "lab worse (of bad-labs 1.0)" in done.stderr
    assert 'did you mean "jpeg_dataset"?' in done.stderr
    shown = site.grader("labs", "show", "small")
    assert shown.returncode == 0
    assert "from good-labs 1.0" in shown.stdout
    assert "\nAbout *JPEGs*.\n" in shown.stdout
    assert site.grader("labs", "show", "worse").returncode == 2
    as_toml = site.grader("labs", "show", "small", "--toml").stdout
    assert opened(as_toml)[0].model_copy(update={"summary": ""}) == opened(TOML)[0]


def test_what_runs_submissions_reads_labs_without_checks(site):
    """The runner's half of this package imports no check, and no plugin."""
    site.install("course-labs", {"small": "course_j.labs"}, package("course_j.labs", small_toml=TOML))
    code = """
import json, sys
from grader_service.labs.specs import lab_ids, lab_text, read_lab
title = read_lab(lab_text("small"), "lab small").title
loaded = [name for name in sys.modules if name.split(".")[0] in ("checks", "course_j")]
print(json.dumps([lab_ids(), title, loaded]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(site.folder)}
    )
    assert json.loads(done.stdout) == [["dali-classification-training", "dali-pipelines", "small"], "A small lab", []]


def test_a_lab_is_read_once_and_again_when_its_text_changes():
    """Every run and every verdict asks for its lab."""
    first = read_lab(TOML, "lab")
    assert read_lab(TOML, "lab") is first
    assert read_lab(TOML.replace("title", "title ", 1), "lab") is not first
