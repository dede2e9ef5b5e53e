"""The examples of third parties: installed from wheels into a clean environment, tested and used by name."""

import ast
import json
from typing import NamedTuple

import pytest

from tests.authoring.conftest import EXAMPLES


class Example(NamedTuple):
    """A package in `examples`."""

    check: str
    wrong: str
    """A control that fails."""
    right: str
    """A control that passes."""
    code: str
    """Of the failure."""
    tier: str
    said: str
    """Words of its feedback."""
    most_lines: int | None = None
    """Of the check and its probe together, where it is a function."""

    @property
    def package(self):
        """Its module."""
        return f"grader_check_{self.check}"

    @property
    def project(self):
        """Its folder in `examples`."""
        return EXAMPLES / self.package.replace("_", "-")

    @property
    def source(self):
        """The folder of its module."""
        return self.project / "src" / self.package


ALL = [
    Example(
        "stable_batches", "failing/padded.py", "passing/resized.py", "changes", "A",
        "`fn.pad` decides on sizes last, at submission.py, line 22",
    ),
    Example(
        "pinned_memory", "failing/too_few.py", "passing/usual.py", "too_few", "D",
        "`loader` has pin_memory=True and num_workers=1", most_lines=15,
    ),
    Example(
        "mean_brightness", "failing/not_scaled.py", "passing/usual.py", "other_mean", "A",
        "Normalise with 255 times mean=(0.485, 0.456, 0.406)", most_lines=25,
    ),
]  # fmt: skip
PROPERTIES = {
    "loads", "docstring", "probes", "purity", "determinism", "missing", "hostile", "limits", "feedback", "codes",
    "leaks", "observations", "version", "controls",
}  # fmt: skip


@pytest.fixture(scope="module", params=ALL, ids=lambda one: one.check)
def example(request):
    """Each of them."""
    return request.param


@pytest.fixture(scope="module")
def place(example, clean_place, tmp_path_factory):
    """The clean environment with the example's wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    build = f"cd {folder}/project && hatchling build -t wheel -d {folder}"
    clean_place.run(f"cp -r {example.project} {folder}/project && {build}")
    clean_place.run(f"pip install {folder}/*.whl")
    yield clean_place
    clean_place.run(f"rm -r venv/lib/python*/site-packages/{example.package}*", clean_place.folder)


def verdict_of(place, example, tmp_path, control, sandbox, code):
    """The verdict on one of the example's controls by the example's lab, which exits with this code."""
    file = tmp_path / "verdict.json"
    options = f"--lab {example.check.replace('_', '-')}-lab --sandbox {sandbox} --device cpu --json {file}"
    place.run(f"grader grade {example.source}/controls/{control} {options}", ok=(code,))
    return json.loads(file.read_text())


@pytest.mark.slow
@pytest.mark.integration
def test_the_installed_check_conforms(place, example):
    """Every property holds for the wheel, the lock and the controls that came with it included; nothing is skipped."""
    report = json.loads(place.run(f"grader checks test {example.check} --json").stdout)
    without = set() if example.tier == "A" else {"probes"}
    found = {one["name"]: one["status"] for one in report["properties"]}
    assert found == dict.fromkeys(PROPERTIES - without, "passed")
    assert (report["passed"], report["source"]) == (True, example.project.name)
    refused = place.run(f"grader checks test {example.check} --accept --skip-controls", ok=(2,))
    assert "is installed" in refused.stderr


@pytest.mark.integration
def test_its_lab_grades_in_the_process_sandbox(place, example, tmp_path):
    """A lab of the package names the check, and the verdict names package and version."""
    verdict = verdict_of(place, example, tmp_path, example.wrong, "process", 1)
    code = f"{example.check}.{example.code}"
    assert [(check["code"], check["tier"]) for check in verdict["checks"]] == [(code, example.tier)]
    assert example.said in verdict["feedback"]
    version, package = verdict["provenance"]["check_versions"][example.check].split(" ", 1)
    assert version == json.loads((example.source / "conformance.lock").read_text())["version"]
    assert package.startswith(f"({example.project.name} ")


@pytest.mark.integration
def test_its_lab_grades_in_the_docker_sandbox(place, example, tmp_path, lab_image):
    """The same lab through containers that hold nothing of the package: its probe was carried there."""
    verdict = verdict_of(place, example, tmp_path, example.right, "docker", 0)
    assert [(check["code"], check["tier"]) for check in verdict["checks"]] == [(f"{example.check}.ok", example.tier)]
    assert (verdict["status"], verdict["provenance"]["sandbox"]) == ("passed", "docker")
    assert verdict["provenance"]["isolated"] is True


def test_it_is_clean_and_short(clean_place, example):
    """The linter finds nothing, and a check that is a function has no more lines than the docs promise.

    Counted is every line of the file but blank ones, imports and the module's docstring.
    """
    clean_place.run("ruff check --no-cache .", example.project)
    if example.most_lines is None:
        return
    text = (example.source / "check.py").read_text()
    tree = ast.parse(text)
    left_out = {
        line
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr))
        for line in range(node.lineno, node.end_lineno + 1)
    }
    counted = [line for number, line in enumerate(text.splitlines(), 1) if line.strip() and number not in left_out]
    assert len(counted) <= example.most_lines
    assert max(map(len, counted)) <= 120
