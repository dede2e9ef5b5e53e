"""`conformance.lock`: a changed answer under the same version is found, and `--accept` writes the new state."""

import copy
import json
import sys
import uuid
from dataclasses import replace

import pytest

from checks.authoring.locking import compare
from checks.authoring.material import LOCK_FILE, Recorded, read_lock
from checks.authoring.scaffold import ProbeChoice, create_package
from checks.authoring.target import find_targets, load_target
from checks.authoring.trial import Happened, Report
from grader_service.errors import ConfigurationError, UsageError

LINES = tuple(
    Recorded.model_validate(
        {"name": name, "observation": {"n": number}, "expect": {"outcome": "passed", "code": "locked.ok"}}
    )
    for number, name in enumerate(("one", "two"))
)

GOOD = {"one": "passed locked.ok 1 A", "two": "failed locked.few 0 A"}


@pytest.fixture
def target(tmp_path, monkeypatch):
    """A check of a project, whose lock lies in a folder of the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = create_package(f"locked_{uuid.uuid4().hex[:8]}", ProbeChoice.GRAPH, tmp_path)
    return load_target(find_targets(str(folder))[0])


def compared(target, *, lines=LINES, results=GOOD, accept=False):
    """What comparing a trial with these results of the recorded observations comes to."""
    happened = (Happened(name=name, group="recorded", status="answered", result=one) for name, one in results.items())
    return compare(target, lines, Report(happened=tuple(happened), impure=()), accept=accept)


def test_without_a_lock_nothing_is_compared(target):
    """The author is told how to begin."""
    found = compared(target)
    assert (found.status, "--accept" in found.todo) == ("skipped", True)


def test_the_accepted_state_holds(target):
    """What was accepted holds as long as nothing changes, and the file is the same whenever it is written."""
    assert compared(target, accept=True).status == "passed"
    text = (target.kept_in / LOCK_FILE).read_text()
    assert compared(target).status == "passed"
    compared(target, results=dict(reversed(GOOD.items())), accept=True)
    assert (target.kept_in / LOCK_FILE).read_text() == text
    assert read_lock(target).version == "1.0.0"


def test_a_changed_result_needs_a_new_version(target):
    """The same version fails and names the change; a new version asks to be accepted, and then holds."""
    compared(target, accept=True)
    changed = GOOD | {"two": "passed locked.ok 1 A"}
    found = compared(target, results=changed)
    assert found.status == "failed"
    assert "the version is still 1.0.0: two: failed locked.few 0 A, now passed locked.ok 1 A" in found.text
    assert "Raise `version`" in found.todo
    later = copy.copy(target.loaded.check)
    later.version = "1.1.0"
    raised = replace(target, loaded=replace(target.loaded, check=later))
    found = compared(raised, results=changed)
    assert (found.status, "that of 1.0.0" in found.text) == ("failed", True)
    compared(raised, results=changed, accept=True)
    assert compared(raised, results=changed).status == "passed"


def test_another_observation_of_the_same_name_is_no_change_of_behaviour(target):
    """An edited or new line asks to be accepted, without a new version."""
    compared(target, accept=True)
    edited = (LINES[0].model_copy(update={"observation": {"n": 9}}), LINES[1])
    found = compared(target, lines=edited, results=GOOD | {"one": "failed locked.few 0 A"})
    assert found.status == "failed"
    assert "does not know these recorded observations as they are: one" in found.text
    more = (*LINES, LINES[0].model_copy(update={"name": "three"}))
    assert "three" in compared(target, lines=more, results=GOOD | {"three": "x"}).text


def test_a_changed_probe_needs_a_new_version(target):
    """The source of the probe is part of what is locked."""
    compared(target, accept=True)
    lock = json.loads((target.kept_in / LOCK_FILE).read_text())
    (probe,) = lock["probes"].values()
    probe["sha256"] = "0" * 64
    (target.kept_in / LOCK_FILE).write_text(json.dumps(lock))
    found = compared(target)
    assert (found.status, "the probe's version" in found.todo) == ("failed", True)
    probe["version"] = "0.9.0"
    (target.kept_in / LOCK_FILE).write_text(json.dumps(lock))
    assert "is not that of these probes and parameters" in compared(target).text


def test_a_changed_default_needs_a_new_version(target):
    """It changes what a lab's results are that says nothing of the parameter; a new parameter does not."""
    compared(target, accept=True)
    path = target.kept_in / LOCK_FILE
    lock = json.loads(path.read_text())
    assert lock["defaults"] == {"least": 16}
    path.write_text(json.dumps(lock | {"defaults": {"least": 8}}))
    found = compared(target)
    assert found.status == "failed"
    assert "the version is still 1.0.0: least: 8, now 16" in found.text
    path.write_text(json.dumps(lock | {"defaults": {"least": 8}, "version": "0.9.0"}))
    assert "that of 0.9.0" in compared(target).text
    path.write_text(json.dumps(lock | {"defaults": {}}))
    found = compared(target)
    assert (found.status, "parameters" in found.text) == ("failed", True)
    assert "--accept" in found.todo


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"check": 3}'])
def test_a_broken_lock_can_be_written_anew(target, text):
    """The author is told so, and `--accept` does it."""
    (target.kept_in / LOCK_FILE).write_text(text)
    with pytest.raises(ConfigurationError):
        read_lock(target)
    found = compared(target)
    assert (found.status, "--accept" in found.todo) == ("failed", True)
    assert compared(target, accept=True).status == "passed"


def test_what_was_installed_is_not_written_to(target):
    """A wheel's files are not the author's source."""
    with pytest.raises(UsageError, match="is installed"):
        compared(replace(target, kept_in=None), accept=True)
