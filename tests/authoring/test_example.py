"""The example of a third party: installed from a wheel into a clean environment, tested and used by name."""

import json

import pytest

from tests.authoring.conftest import EXAMPLE

PACKAGE = "src/grader_check_stable_batches"


@pytest.fixture(scope="module")
def place(clean_place, tmp_path_factory):
    """The clean environment with the example's wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    clean_place.run(f"cp -r {EXAMPLE} {folder}/project && cd {folder}/project && hatchling build -t wheel -d {folder}")
    clean_place.run(f"pip install {folder}/*.whl")
    yield clean_place
    clean_place.run("rm -r venv/lib/python*/site-packages/grader_check_stable_batches*", clean_place.folder)


def verdict_of(place, tmp_path, control, options, code):
    """The verdict on one of the example's controls, which exits with this code."""
    file = tmp_path / "verdict.json"
    command = f"grader grade {EXAMPLE / PACKAGE}/controls/{control} --device cpu --json {file} {options}"
    place.run(command, ok=(code,))
    return json.loads(file.read_text())


@pytest.mark.slow
@pytest.mark.integration
def test_the_installed_check_conforms(place):
    """Every property holds for the wheel, the lock and the controls that came with it included; nothing is skipped."""
    done = place.run("grader checks test stable_batches --json")
    report = json.loads(done.stdout)
    assert {one["name"]: one["status"] for one in report["properties"]} == dict.fromkeys(
        (
            "loads", "docstring", "probes", "purity", "determinism", "missing", "hostile", "limits", "codes",
            "leaks", "observations", "version", "controls",
            "feedback",
        ),
        "passed",
    )  # fmt: skip
    assert (report["passed"], report["source"]) == (True, "grader-check-stable-batches")
    refused = place.run("grader checks test stable_batches --accept --skip-controls", ok=(2,))
    assert "is installed" in refused.stderr


@pytest.mark.integration
def test_its_lab_grades_in_the_process_sandbox(place, tmp_path):
    """A lab of the package names the check, and the verdict names package and version."""
    verdict = verdict_of(place, tmp_path, "failing/padded.py", "--lab stable-batches-lab --sandbox process", 1)
    assert [(check["code"], check["tier"]) for check in verdict["checks"]] == [("stable_batches.changes", "A")]
    assert "`fn.pad` decides on sizes last, at submission.py, line 22" in verdict["feedback"]
    assert verdict["provenance"]["check_versions"] == {"stable_batches": "1.0.0 (grader-check-stable-batches 1.0.0)"}


@pytest.mark.integration
def test_its_lab_grades_in_the_docker_sandbox(place, tmp_path, lab_image):
    """The same lab through containers that hold nothing of the package: its probe was carried there."""
    verdict = verdict_of(place, tmp_path, "passing/resized.py", "--lab stable-batches-lab --sandbox docker", 0)
    assert [(check["code"], check["tier"]) for check in verdict["checks"]] == [("stable_batches.ok", "A")]
    assert (verdict["status"], verdict["provenance"]["sandbox"]) == ("passed", "docker")
    assert verdict["provenance"]["isolated"] is True


def test_it_is_clean_and_its_parts_agree(clean_place):
    """The linter finds nothing with its default settings, and the versions of package and lock are one."""
    clean_place.run("ruff check --isolated --no-cache .", EXAMPLE)
    lock = json.loads((EXAMPLE / PACKAGE / "conformance.lock").read_text())
    assert (lock["check"], lock["version"]) == ("stable_batches", "1.0.0")
    assert 'version = "1.0.0"' in (EXAMPLE / "pyproject.toml").read_text()
