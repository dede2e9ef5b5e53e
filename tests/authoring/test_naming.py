"""Which check an author means: by its object, in whose file, and with which material."""

import runpy
import sys

import pytest

from checks.authoring.locking import compare
from checks.authoring.material import CONTROLS, LOCK_FILE, OBSERVATIONS_FILE
from checks.authoring.scaffold import ProbeChoice, create_package
from checks.authoring.target import load_target, target_of
from checks.authoring.trial import Report
from grader_service.errors import ConfigurationError

CHECK = '''from collections.abc import Callable

from checks.api import Loaders, Result, check, passed


@check(version="1.0.0")
def {name}(loaders: Loaders, *, least: int = 2{more}) -> Result:
    """Any loader."""
    return passed("Good.")
'''


def written(folder, name, more=""):
    """A check's file in a folder."""
    path = folder / f"{name}.py"
    path.write_text(CHECK.format(name=name, more=more))
    return path


def test_a_check_of_ones_own_is_judged_by_its_file(tmp_path, monkeypatch):
    """Although a check of that id is installed, or declared by the project around it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = written(tmp_path, "jpeg_dataset")
    own = runpy.run_path(str(path), run_name="own")["jpeg_dataset"]
    assert target_of(own).text == f"file:{path}"
    folder = create_package("first_one", ProbeChoice.NONE, tmp_path)
    path = written(folder, "first_one")
    own = runpy.run_path(str(path), run_name="own")["first_one"]
    assert target_of(own).text == f"file:{path}"
    (folder / "pyproject.toml").write_text("[project]\nname = 'course'\n")
    assert target_of(own).text == f"file:{path}"


def test_an_installed_check_and_one_of_a_project_are_known_by_their_objects(tmp_path, monkeypatch):
    """With the probes and the material of the project."""
    from checks.cuda_batch.check import cuda_batch

    assert target_of(cuda_batch).loaded.check is cuda_batch
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = create_package("second_one", ProbeChoice.NONE, tmp_path)
    target = load_target(f"project:{folder}:second_one")
    assert target_of(target.loaded.check).text == target.text


def locked(path, **options):
    """The property `version` of a check's file, without recorded observations."""
    return compare(load_target(f"file:{path}"), (), Report(happened=(), impure=()), **{"accept": False, **options})


def test_the_lock_of_a_file_is_compared_whenever_it_is_there(tmp_path):
    """A changed default under the same version is an error, without recorded observations too."""
    path = written(tmp_path, "one")
    assert locked(path).status == "skipped"
    assert locked(path, accept=True).status == "passed"
    assert locked(path).status == "passed"
    path.write_text(path.read_text().replace("least: int = 2", "least: int = 3"))
    found = locked(path)
    assert (found.status, "least: 2, now 3" in found.text) == ("failed", True)


def test_two_files_in_one_folder_have_material_of_their_own(tmp_path):
    """Each in the folder of its name, which `--accept` makes; what lies in the shared folder is neither's."""
    one, two = written(tmp_path, "one"), written(tmp_path, "two")
    for name in (LOCK_FILE, OBSERVATIONS_FILE):
        (tmp_path / name).write_text("no JSON")
    (tmp_path / CONTROLS).mkdir()
    for path in (one, two):
        assert locked(path, accept=True).status == "passed"
        target = load_target(f"file:{path}")
        assert target.material(LOCK_FILE) == tmp_path / path.stem / LOCK_FILE
        assert target.material(CONTROLS) is None
        assert target.material(OBSERVATIONS_FILE) is None
    assert (locked(one).status, locked(two).status) == ("passed", "passed")
    (tmp_path / "check").mkdir()
    alone = one.rename(tmp_path / "check.py")
    assert load_target(f"file:{alone}").kept_in == tmp_path


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ", how: Callable[[int], int] = abs",
            r"parameter `how`, of the type .*Callable.*; expected what a lab can say",
        ),
        (", mark: bytes = b'\\xff'", r"parameter `mark`, of the type .*bytes.*utf-8.*; expected what a lab can say"),
    ],
)
def test_a_parameter_that_no_lab_can_set_is_named(tmp_path, more, message):
    """When the check is loaded, with what is expected."""
    with pytest.raises(ConfigurationError, match=message):
        load_target(f"file:{written(tmp_path, 'one', more)}")
