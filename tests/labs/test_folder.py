"""Labs without a package: of a file, and of an operator's folder, which is read again whenever a lab is asked for."""

import re
import time
from types import SimpleNamespace

import pytest

from checks.registry import Registry
from grader_service.errors import ConfigurationError, UsageError
from grader_service.labs import discovery
from grader_service.labs.catalogue import named_lab, named_text
from grader_service.labs.discovery import LabDiscovery
from grader_service.labs.specs import read_lab
from tests.command_line import invoked
from tests.labs.texts import TOML, YAML


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Files count as written after a short while."""
    monkeypatch.setattr(discovery, "_SETTLED_S", 0.2)


@pytest.fixture
def meanwhile(monkeypatch):
    """Work that is done, each once, whenever a lab's file is waited for."""
    work = []
    sleep = SimpleNamespace(sleep=lambda _: work and work.pop(0)(), time=time.time)
    monkeypatch.setattr(discovery, "time", sleep)
    monkeypatch.setattr(discovery, "_SETTLED_S", 3600.0)
    return work


def test_a_file_that_is_being_written_is_waited_for(tmp_path, meanwhile):
    """Half of a lab may be a valid lab; and one that is replaced is not there for a moment."""
    labs, path = LabDiscovery(points=(), folder=tmp_path), tmp_path / "small.toml"
    path.write_text(TOML[: len(TOML) // 2])
    meanwhile.append(lambda: path.write_text(TOML))
    assert labs.text("small").content == TOML.encode()
    path.unlink()
    meanwhile.append(lambda: path.write_text(TOML))
    assert labs.text("small").content == TOML.encode()
    assert not meanwhile


def test_what_lies_elsewhere_does_not_need_the_folder(tmp_path):
    """Nor is any lab needed from it, to open a sandbox or to look at a GPU."""
    away = LabDiscovery(points=(), folder=tmp_path / "none")
    assert away.text("dali-pipelines").id == "dali-pipelines"
    with pytest.raises(ConfigurationError, match="GRADER_LABS_DIR"):
        away.text("small")
    for lab_id in away._own:
        (tmp_path / f"{lab_id}.toml").write_text(TOML)
    assert read_lab(LabDiscovery(points=(), folder=tmp_path).grader_text(), "lab").image


def test_hidden_files_are_no_labs(tmp_path):
    """Editors and archives leave them beside the real ones."""
    for name in ("._small.toml", ".#small.toml"):
        (tmp_path / name).write_text(TOML)
    assert LabDiscovery(points=(), folder=tmp_path).ids() == ["dali-classification-training", "dali-pipelines"]


def test_a_folder_is_read_as_it_is_now(tmp_path):
    """Labs come, change and go while a process runs; other files are none."""
    labs = LabDiscovery(points=(), folder=tmp_path)
    assert "small" not in labs.ids()
    (tmp_path / "small.toml").write_text(TOML)
    (tmp_path / "notes.txt").write_text("none")
    assert labs.ids() == ["dali-classification-training", "dali-pipelines", "small"]
    assert labs.origin("small") == str(tmp_path / "small.toml")
    assert read_lab(labs.text("small"), "small").title == "A small lab"
    (tmp_path / "small.toml").write_text(TOML.replace("A small lab", "A larger lab"))
    assert read_lab(labs.text("small"), "small").title == "A larger lab"
    (tmp_path / "small.toml").unlink()
    with pytest.raises(UsageError, match="there is no lab 'small'"):
        labs.text("small")


def test_one_id_lies_in_one_place(tmp_path):
    """Neither two files nor a file and the grader's own; others are not kept from being read."""
    labs = LabDiscovery(points=(), folder=tmp_path)
    (tmp_path / "small.toml").write_text(TOML)
    (tmp_path / "small.yaml").write_text(YAML)
    (tmp_path / "dali-pipelines.toml").write_text(TOML)
    both = f"{tmp_path / 'small.toml'}, {tmp_path / 'small.yaml'}"
    with pytest.raises(ConfigurationError, match=re.escape(f"lab 'small' is declared by {both}; take all")):
        labs.text("small")
    with pytest.raises(ConfigurationError, match="declared by grader-service"):
        labs.text("dali-pipelines")
    assert labs.text("dali-classification-training").id == "dali-classification-training"


def test_the_file_says_the_id_that_it_has(tmp_path):
    """A lab that is copied and not renamed inside is no lab, with the line to change."""
    (tmp_path / "other.toml").write_text(TOML)
    with pytest.raises(ConfigurationError, match=r'other\.toml:2:6: id: .*"other", and its file says "small"'):
        read_lab(LabDiscovery(points=(), folder=tmp_path).text("other"), "lab other")


def test_a_folder_that_is_none_is_said(tmp_path):
    """With the variable that names it, and what is expected."""
    for missing in (tmp_path / "none", tmp_path / "file"):
        (tmp_path / "file").write_text("")
        with pytest.raises(ConfigurationError, match=r"GRADER_LABS_DIR names .*; expected a folder with labs"):
            LabDiscovery(points=(), folder=missing).ids()


def test_a_command_takes_an_id_or_a_file(tmp_path):
    """The ending tells them apart; a file that is not there is said to be one."""
    registry, path = Registry(), tmp_path / "any-name.toml"
    path.write_text(TOML)
    assert named_lab(str(path), registry).id == "small"
    assert named_text(str(path)).content == TOML.encode()
    assert named_lab("dali-pipelines", registry).id == "dali-pipelines"
    for call in (lambda: named_lab("none.toml", registry), lambda: named_text("none.toml")):
        with pytest.raises(UsageError, match=r"none\.toml.*cannot be read: No such file"):
            call()
    assert "A small lab" in invoked("labs", "show", str(path)).output


@pytest.mark.integration
def test_a_new_lab_can_be_tried_at_once(tmp_path, monkeypatch):
    """Validated, and its examples come out as their folders say; one in the wrong folder is told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADER_STATE_DIR", str(tmp_path / "state"))
    assert "image-decoding.toml and image-decoding were made" in invoked("labs", "new", "image-decoding").output
    assert "is valid: 2 steps, 2 checks" in invoked("labs", "validate", "image-decoding.toml").output
    words = ("labs", "try", "image-decoding.toml", "--on", "image-decoding", "--device", "cpu")
    lines = [line.split() for line in invoked(*words, COLUMNS="200").stdout.splitlines()]
    assert ["failing/few_images.py", "✗", "jpeg.too_few", "✓", "failed", "yes"] in lines
    assert ["passing/complete.py", "✓", "✓", "passed", "yes"] in lines
    assert lines[-1][:3] == ["2", "of", "2"]
    for name in (".venv/passing/setup.py", "__MACOSX/passing/._a.py"):
        (tmp_path / "image-decoding" / name).parent.mkdir(parents=True)
        (tmp_path / "image-decoding" / name).write_text("raise SystemExit(1)")
    alone = (*words[:4], "image-decoding/failing", *words[5:])
    assert "1 of 1 came out as expected" in invoked(*alone, COLUMNS="200").stdout
    (tmp_path / "image-decoding/failing/few_images.py").rename(tmp_path / "image-decoding/passing/few_images.py")
    (tmp_path / "image-decoding/passing/complete.py").rename(tmp_path / "image-decoding/complete.py")
    found = [line for line in invoked(*words, "--json", status=1).stdout.splitlines() if line.startswith("{")]
    assert ['"expected":null' in line for line in found] == [True, False]
    assert '"expected":"passed","status":"failed"' in found[1]
    (tmp_path / "image-decoding/passing/few_images.py").unlink()
    assert "Nothing was expected: put submissions into passing/" in invoked(*words, COLUMNS="200").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("new", "a b"), "cannot be the id of a lab"),
        (("new", "../up"), "cannot be the id of a lab"),
        (("new", ".hidden"), "cannot name a lab's file"),
        (("new", "x.toml"), "cannot name a lab's file"),
        (("new", "dali-pipelines"), "there is a lab 'dali-pipelines' already, from grader-service"),
        (("new", "there"), "is there already; nothing was written"),
        (("try", "there.toml", "--on", "nowhere"), "there is no folder nowhere"),
        (("try", "there.toml", "--on", "empty"), "holds no submission"),
        (("try", "none.toml", "--on", "empty"), "cannot be read"),
    ],
)
def test_what_cannot_be_made_or_tried_is_said(tmp_path, monkeypatch, words, message):
    """Nothing is written or run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.toml").write_text(TOML)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=re.escape(message)):
        invoked("labs", *words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "there.toml"]
