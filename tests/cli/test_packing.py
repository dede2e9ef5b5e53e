"""A folder in place of a file: packed as its learner would, or refused with what to do."""

import os
import re
import shutil

import pytest

from grader_service.cli.packing import one_file
from grader_service.errors import UsageError
from grader_service.ingest.artifact import artifact_at, prepare
from grader_service.ingest.folder import pack
from grader_service.ingest.limits import IngestLimits
from tests.command_line import invoked


@pytest.fixture
def lab(tmp_path):
    """A learner's folder: a module beside pictures, and what tools left there."""
    folder = tmp_path / "my lab"
    for path, text in {
        "work.py": "x = 1\n",
        "data/a.jpg": "J",
        ".git/HEAD": "ref",
        "__pycache__/work.cpython-311.pyc": "c",
        ".venv/bin/python": "e",
        ".DS_Store": "m",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / ".venv/bin/python3").symlink_to("python")
    return folder


def prepared(folder, into):
    """(what runs, every file that a pod would see) of a folder."""
    into.mkdir()
    with one_file(folder) as file:
        found = prepare(artifact_at(file), into)
    return found.entry, sorted(path.relative_to(into).as_posix() for path in into.rglob("*") if path.is_file())


def test_what_a_learner_means_is_packed(lab, tmp_path, capsys):
    """The one entry point, the data, nothing of the tools; links of an environment are no matter."""
    assert prepared(lab, tmp_path / "into") == ("work.py", ["data/a.jpg", "work.py"])
    assert capsys.readouterr().err == f"grader: packed the folder {lab} as my lab.zip; its entry point is work.py\n"


def test_one_enclosing_folder_is_looked_through(lab, tmp_path):
    """As in an archive; what is named `submission` goes before others."""
    (lab / "submission.ipynb").write_text('{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}')
    outer = tmp_path / "outer"
    outer.mkdir()
    shutil.move(lab, outer / "inner")
    with one_file(outer) as file:
        assert file.name == "outer.zip"
    assert pack(outer, tmp_path)[1] == "submission.ipynb"


def test_the_same_files_are_the_same_submission(lab, tmp_path):
    """Whenever they were written: the verdict names a digest, and the service grades the same bytes once."""
    with one_file(lab) as file:
        first = artifact_at(file).sha256
    again = tmp_path / "again" / lab.name
    shutil.copytree(lab, again, symlinks=True)
    os.utime(again / "work.py", (1, 1))
    with one_file(again) as file:
        assert artifact_at(file).sha256 == first
    assert not file.exists()
    (again / "work.py").write_text("x = 2\n")
    with one_file(again) as file:
        assert artifact_at(file).sha256 != first


def _two(folder):
    (folder / "other.py").touch()


def _none(folder):
    (folder / "work.py").rename(folder / "data" / "work.py")
    (folder / "notes.txt").touch()


def _link(folder):
    (folder / "data" / "b.jpg").symlink_to("/etc/hostname")


def _linked_folder(folder):
    (folder / "more").symlink_to("/etc")


def _pipe(folder):
    os.mkfifo(folder / "data" / "p")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_two, "It is not clear which of 'other.py', 'work.py' should run. Name the one that should submission.py"),
        (_none, "The folder has no submission.py, submission.ipynb or other Python file or notebook at its top"),
        (_link, "data/b.jpg is a link. Put the file itself in its place"),
        (_linked_folder, "more is a link. Put the file itself in its place"),
        (_pipe, "data/p is a device, pipe or socket. Move it elsewhere"),
    ],
)
def test_another_folder_is_refused_with_what_to_do(lab, change, said):
    """Nothing outside of the folder is sent, and nobody guesses what should run."""
    change(lab)
    with pytest.raises(UsageError, match=f"^{re.escape(f'{lab} is not packed: {said}')}"), one_file(lab):
        pass


@pytest.mark.parametrize("limits", [IngestLimits(members=1), IngestLimits(unpacked_bytes=3)])
def test_a_folder_of_more_than_a_submission_is_refused(lab, tmp_path, limits):
    """Such as a home folder, of which not all is looked at."""
    with pytest.raises(UsageError, match=r"it holds more than .*Give the one file, or a folder with your work alone"):
        pack(lab, tmp_path, limits)


@pytest.mark.parametrize("command", ["grade", "submit"])
def test_commands_refuse_it_before_anything_is_done(lab, tmp_path, command):
    """Neither a sandbox nor Redis is asked; nor for what is not there."""
    nowhere = {"GRADER_REDIS_URL": "redis://127.0.0.1:1/0", "GRADER_STATE_DIR": str(tmp_path / "state")}
    _two(lab)
    with pytest.raises(UsageError, match="is not packed: It is not clear which of"):
        invoked(command, str(lab), **nowhere)
    with pytest.raises(UsageError, match=r"is not a file or folder; expected a \.py, .* or a folder with one entry"):
        invoked(command, str(tmp_path / "nothing.py"), **nowhere)
