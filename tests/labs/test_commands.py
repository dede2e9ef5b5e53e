"""`grader labs` in this process: what authors and course staff see."""

import json

import pytest

from grader_service import __version__
from grader_service.errors import UsageError
from grader_service.labs.catalogue import load_lab_file
from grader_service.labs.specs import lab_text, opened
from tests.command_line import invoked
from tests.labs.texts import REGISTRY, TOML, YAML


def labs(*words, status=0):
    """What `grader labs …` printed."""
    return invoked("labs", *map(str, words), status=status, COLUMNS="200").output


def test_validate_reports_on_every_file(tmp_path):
    """A wrong file does not keep the others from being looked at, nor does what is none; the worst decides the code."""
    good, bad, other = tmp_path / "good.yaml", tmp_path / "bad.toml", tmp_path / "lab.json"
    good.write_text(YAML)
    bad.write_text(TOML.replace("points = 25", 'points = "x"'))
    other.write_text("{}")
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    assert labs("validate", bad, good, other, tmp_path / "none.toml", tmp_path, folder, status=2).splitlines() == [
        f'{bad}:12:10: steps[0].checks[0].points: expected a number from 0 to 1000, got "x"',
        f"{good}: lab small 1.0.0 is valid: 2 steps, 2 checks",
        f"{other}:1:1: expected a file whose name ends in .toml, .yaml, .yml",
        f"{tmp_path / 'none.toml'}:1:1: cannot be read: No such file or directory",
        f"{tmp_path}:1:1: expected a file whose name ends in .toml, .yaml, .yml",
        f"{folder}:1:1: cannot be read: {folder} is no regular file",
    ]


def test_validate_passes_with_warnings(tmp_path):
    """A hint is printed as one, and the exit code is 0."""
    path = tmp_path / "lab.toml"
    path.write_text(TOML.replace("threshold = 1.1", "threshold = 0.5"))
    warning = f"{path}:23:13: warning: steps[1].checks[0].params.threshold: 0.5 is below 1"
    assert warning in labs("validate", path)


def test_validate_as_json_prints_nothing_else(tmp_path):
    """One object per mistake, with all that is said of it; a valid file has none."""
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(TOML)
    bad.write_text(TOML.replace("points = 25", "point = 25"))
    assert labs("validate", "--json", good) == ""
    missing, unknown = map(json.loads, labs("validate", "--json", good, bad, status=2).splitlines())
    assert missing == {
        "file": str(bad), "severity": "error", "code": "field.missing", "line": 10, "column": 9,
        "path": "steps[0].checks[0].points", "message": "missing; expected a number from 0 to 1000",
    }  # fmt: skip
    assert (unknown["file"], unknown["line"], unknown["code"]) == (str(bad), 12, "field.unknown")


def test_show_prints_what_the_lab_is_about():
    """For people by default, as JSON with defaults, and as TOML as it was written."""
    shown = labs("show", "dali-pipelines")
    for word in ("NVIDIA DALI", "grader-service", "throughput_ratio", "threshold = 1.1", "min_wins = 3", "25"):
        assert word in shown
    document = json.loads(labs("show", "dali-pipelines", "--json"))
    assert document["limits"]["memory_mib"] == 8192
    assert document["steps"][0]["checks"][0]["feedback"] == "full"
    assert labs("show", "dali-pipelines", "--toml") == lab_text("dali-pipelines").content.decode()
    with pytest.raises(UsageError):
        labs("show", "dali-pipelines", "--toml", "--json")


def test_labs_are_listed_with_their_origin():
    """The distribution stands beside each lab."""
    (row,) = [row for row in labs("list").splitlines() if row.startswith("dali-pipelines")]
    assert row.rstrip().endswith(f"grader-service {__version__}")


def test_a_file_of_its_own_can_be_graded(tmp_path):
    """In both languages; a file that is not there is the caller's mistake."""
    path = tmp_path / "lab.yml"
    path.write_text(YAML)
    assert load_lab_file(path, REGISTRY) == opened(TOML)[0]
    with pytest.raises(UsageError, match="No such file"):
        load_lab_file(tmp_path / "none.toml", REGISTRY)
