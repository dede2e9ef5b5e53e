"""`conformance.lock`: a changed answer under the same version is found, and `--accept` writes the new state."""

import json
import sys
import uuid

import pytest

from checks.authoring.locking import compare
from checks.authoring.material import LOCK_FILE, Recorded, read_lock
from checks.authoring.scaffold import ProbeChoice, create
from checks.authoring.target import Target, find_targets, load_target
from checks.authoring.trial import Happened, Report
from grader_service.errors import ConfigurationError, UsageError

LINES = tuple(
    Recorded.model_validate(
        {"name": name, "observation": {"n": number}, "expect": {"outcome": "passed", "code": "locked.ok"}}
    )
    for number, name in enumerate(("one", "two"))
)


@pytest.fixture
def target(tmp_path, monkeypatch):
    """A check of a project, whose lock lies in a folder of the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = create(f"locked_{uuid.uuid4().hex[:8]}", ProbeChoice.GRAPH, tmp_path)
    return load_target(find_targets(str(folder))[0])


def reported(**results):
    """What a trial says of the recorded observations."""
    return Report(
        happened=tuple(
            Happened(name=name, group="recorded", status="answered", result=result) for name, result in results.items()
        ),
        impure=(),
    )


def at_version(target, version):
    """The same check with another version."""
    check = type("Other", (type(target.loaded.check),), {"version": version})()
    loaded = type(target.loaded)(check, target.loaded.distribution, target.loaded.distribution_version)
    return Target(target.text, target.name, loaded, target.probes, target.folders, target.kept_in)


GOOD = {"one": "passed locked.ok 1 A", "two": "failed locked.few 0 A"}


def test_without_a_lock_nothing_is_compared(target):
    """The author is told how to begin."""
    found = compare(target, LINES, reported(**GOOD), accept=False)
    assert (found.status, "--accept" in found.todo) == ("skipped", True)


def test_the_accepted_state_holds(target):
    """What was accepted holds as long as nothing changes, and the file is the same whenever it is written."""
    first = compare(target, LINES, reported(**GOOD), accept=True)
    text = (target.kept_in / LOCK_FILE).read_text()
    assert first.status == "passed"
    assert compare(target, LINES, reported(**GOOD), accept=False).status == "passed"
    compare(target, LINES, reported(**dict(reversed(GOOD.items()))), accept=True)
    assert (target.kept_in / LOCK_FILE).read_text() == text
    assert read_lock(target).version == "1.0.0"


def test_a_changed_result_needs_a_new_version(target):
    """The same version fails and names the change; a new version asks to be accepted, and then holds."""
    compare(target, LINES, reported(**GOOD), accept=True)
    changed = reported(**{**GOOD, "two": "passed locked.ok 1 A"})
    found = compare(target, LINES, changed, accept=False)
    assert found.status == "failed"
    assert "the version is still 1.0.0: two: failed locked.few 0 A, now passed locked.ok 1 A" in found.text
    assert "Raise `version`" in found.todo
    raised = at_version(target, "1.1.0")
    found = compare(raised, LINES, changed, accept=False)
    assert (found.status, "that of 1.0.0" in found.text) == ("failed", True)
    compare(raised, LINES, changed, accept=True)
    assert compare(raised, LINES, changed, accept=False).status == "passed"


def test_another_observation_of_the_same_name_is_no_change_of_behaviour(target):
    """An edited or new line asks to be accepted, without a new version."""
    compare(target, LINES, reported(**GOOD), accept=True)
    edited = (LINES[0].model_copy(update={"observation": {"n": 9}}), LINES[1])
    found = compare(target, edited, reported(**{**GOOD, "one": "failed locked.few 0 A"}), accept=False)
    assert found.status == "failed"
    assert "does not know these recorded observations as they are: one" in found.text
    more = compare(
        target, (*LINES, LINES[0].model_copy(update={"name": "three"})), reported(**GOOD, three="x"), accept=False
    )
    assert "three" in more.text


def test_a_changed_probe_needs_a_new_version(target):
    """The source of the probe is part of what is locked."""
    compare(target, LINES, reported(**GOOD), accept=True)
    lock = json.loads((target.kept_in / LOCK_FILE).read_text())
    (probe,) = lock["probes"].values()
    probe["sha256"] = "0" * 64
    (target.kept_in / LOCK_FILE).write_text(json.dumps(lock))
    found = compare(target, LINES, reported(**GOOD), accept=False)
    assert (found.status, "VERSION" in found.todo) == ("failed", True)
    probe["version"] = "0.9.0"
    (target.kept_in / LOCK_FILE).write_text(json.dumps(lock))
    assert "is not that of these probes" in compare(target, LINES, reported(**GOOD), accept=False).text


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"check": 3}'])
def test_a_broken_lock_can_be_written_anew(target, text):
    """The author is told so, and `--accept` does it."""
    (target.kept_in / LOCK_FILE).write_text(text)
    with pytest.raises(ConfigurationError):
        read_lock(target)
    found = compare(target, LINES, reported(**GOOD), accept=False)
    assert (found.status, "--accept" in found.todo) == ("failed", True)
    assert compare(target, LINES, reported(**GOOD), accept=True).status == "passed"


def test_what_was_installed_is_not_written_to(target):
    """A wheel's files are not the author's source."""
    installed = Target(target.text, target.name, target.loaded, target.probes, target.folders, None)
    with pytest.raises(UsageError, match="is installed"):
        compare(installed, LINES, reported(**GOOD), accept=True)
