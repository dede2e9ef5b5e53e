"""`grader doctor` on broken hosts: a line for each problem, with what to do about it."""

import json
import re

import pytest

from grader_service.host.doctor import Level, _engine, _runc, _toolkit, examine
from grader_service.settings import Settings
from grader_service.store import workers
from grader_service.store.engine import Store
from tests.command_line import grader, invoked


def test_no_engine_is_named_with_its_remedy(tmp_path):
    """(G3) Exit code 3; one line of JSON for each finding, and each problem comes with advice."""
    done = grader("doctor", "--json", state_dir=tmp_path, DOCKER_HOST=f"unix://{tmp_path}/docker.sock")
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 3
    (engine,) = [found for found in findings if found["topic"] == "Docker engine"]
    assert (engine["level"], engine["required"]) == ("missing", True)
    assert "dockerd" in engine["advice"]
    assert [found["topic"] for found in findings if found["level"] != "ok" and not found["advice"]] == []
    topics = {found["topic"] for found in findings}
    assert len(topics) == len(findings)
    assert {"cores", "memory", "Docker engine", "GPU", "embedded mode"} <= topics


@pytest.mark.integration
def test_a_missing_image_is_named_with_its_remedy(engine, tmp_path):
    """(G3) For people, too, without a traceback."""
    done = grader("doctor", state_dir=tmp_path, COLUMNS="200", GRADER_LAB_IMAGE="grader-nope")
    assert done.returncode == 3
    assert "grader-nope is not there" in done.stdout
    assert "grader images build" in done.stdout
    assert "Traceback" not in done.stderr


class WeakEngine:
    """An engine that says of itself what a test wants it to."""

    def __init__(self, **info):
        self._info = {"ServerVersion": "20.10", "SecurityOptions": ["name=seccomp,profile=default"], **info}

    def info(self):
        return self._info


@pytest.mark.parametrize(
    ("info", "topic"),
    [
        ({"SecurityOptions": []}, "seccomp"),
        ({"MemoryLimit": False}, "memory limits"),
        ({"PidsLimit": False}, "process limits"),
        ({"CPUSet": False}, "CPU sets"),
    ],
)
def test_an_engine_without_what_the_sandbox_needs(info, topic):
    """(G2) The gap is named, is required, and has a remedy."""
    (gap,) = [found for found in _engine(WeakEngine(**info)) if found.level is not Level.OK]
    assert (gap.topic, gap.required) == (topic, True)
    assert gap.advice


def test_an_engine_with_everything_has_no_gap():
    """(G2) And nothing is invented."""
    assert {found.level for found in _engine(WeakEngine(MemoryLimit=True, PidsLimit=True, CPUSet=True))} == {Level.OK}


def test_a_full_or_missing_state_folder_is_no_crash(tmp_path):
    """(G3) The nearest folder that exists is looked at."""
    found = examine(Settings(state_dir=tmp_path / "not" / "there"))
    assert [finding for finding in found if finding.topic.startswith("disk at")]


def test_a_lock_folder_that_cannot_be_written_to(tmp_path):
    """No GPU can be held without it, and no user id be taken."""
    found = {
        folder: next(finding for finding in examine(Settings(lock_dir=folder)) if finding.topic == "lock folder")
        for folder in (tmp_path, tmp_path / "nowhere")
    }
    assert [(finding.level, finding.required) for finding in found.values()] == [
        (Level.OK, False),
        (Level.MISSING, True),
    ]
    assert "GRADER_LOCK_DIR" in found[tmp_path / "nowhere"].advice


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("1.1.5+ds1", Level.LIMITED),
        ("1.3.5", Level.LIMITED),
        ("1.3.6", Level.OK),
        ("1.4.2", Level.LIMITED),
        ("1.4.3-rc.1", Level.OK),
        ("1.5.0", Level.OK),
        ("2.0.1", Level.OK),
    ],
)
def test_a_runtime_with_known_escapes_is_named(version, level):
    """Each release line has its own first release without them; a host may still be used, so it is no gap."""
    (found,) = _runc({"Components": [{"Name": "Engine", "Version": "28.0.0"}, {"Name": "runc", "Version": version}]})
    assert (found.topic, found.level, found.required) == ("runc", level, False)
    assert bool(found.advice) is (level is Level.LIMITED)


def test_an_engine_that_does_not_name_its_runtime():
    """Nothing is said of what is not known."""
    assert _runc({"Components": None}) == []
    assert _runc({"Components": [{"Name": "runc", "Version": "main"}]}) == []


@pytest.mark.parametrize(("version", "level"), [("1.17.7", Level.LIMITED), ("1.17.8", Level.OK), ("1.20.0", Level.OK)])
def test_a_toolkit_with_known_escapes_is_named(tmp_path, monkeypatch, version, level):
    """As `nvidia-ctk --version` says it; without one there is nothing to say."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _toolkit() == []
    tool = tmp_path / "nvidia-ctk"
    tool.write_text(f"#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version {version}'\necho commit: abc\n")
    tool.chmod(0o755)
    (found,) = _toolkit()
    assert (found.level, found.found) == (level, version)


def test_memory_of_each_redis_is_shown(tmp_path):
    """As the judge saw it last; nothing is shown of one that does not answer or has no limit."""
    url = f"sqlite:///{tmp_path / 'grader.db'}"
    store = Store(url)
    store.migrate()
    asked = {"GRADER_STATE_DIR": str(tmp_path), "GRADER_DATABASE_URL": url, "COLUMNS": "200"}
    workers.say(store, workers.Identity(workers.RUN, "host", "cpu:host:0"), [])
    judge = workers.Identity(workers.JUDGE, "host", None)
    workers.say(store, judge, [])
    assert "memory used" not in invoked("doctor", "--service", **asked).stdout
    workers.say(store, judge, [], {"broker": 0.031, "results": 0.97})
    shown = invoked("doctor", "--service", **asked).stdout
    assert re.findall(r"^(broker|results) +([0-9]+)%", shown, re.MULTILINE) == [("broker", "3"), ("results", "97")]
    lines = invoked("doctor", "--service", "--json", **asked).stdout.splitlines()
    assert [json.loads(line)["memory"] for line in lines] == [{"broker": 0.031, "results": 0.97}, {}]
    workers.say(store, judge, ["results: it does not answer"], {"broker": 0.031})
    shown = invoked("doctor", "--service", status=1, **asked).stdout
    assert "results: it does not answer" in shown
    assert re.findall(r"^(broker|results) +", shown, re.MULTILINE) == ["broker"]
    store.close()


def test_chores_that_fail_and_disks_that_are_nearly_full_are_shown(tmp_path):
    """A chore that has failed for a minute is a failure; a disk is none as long as workers can work."""
    url = f"sqlite:///{tmp_path / 'grader.db'}"
    store = Store(url)
    store.migrate()
    asked = {"GRADER_STATE_DIR": str(tmp_path), "GRADER_DATABASE_URL": url, "COLUMNS": "200"}
    workers.say(store, workers.Identity(workers.RUN, "host", "cpu:host:0"), [], {}, {"state": 0.95})
    judge = workers.Identity(workers.JUDGE, "host")

    def told(for_s, status):
        chores = {"deliver": workers.Failing(for_s=for_s, error="OSError: no room")}
        workers.say(store, judge, [], {}, {"state": 0.5, "artifacts": 0.89}, chores)
        return invoked("doctor", "--service", status=status, **asked).stdout

    shown = told(59.0, 0)
    assert re.findall(r"^(\S+) +(state|artifacts) +([0-9]+)%", shown, re.MULTILINE) == [
        ("run/cpu:host:0", "state", "95")
    ]
    assert re.search(r"^judge/host +deliver +59 s +OSError: no room", shown, re.MULTILINE)
    assert "deliver" in told(60.0, 1)
    line = invoked("doctor", "--service", "--json", status=1, **asked).stdout.splitlines()[0]
    assert json.loads(line)["chores"] == {"deliver": {"for_s": 60.0, "error": "OSError: no room"}}
    workers.say(store, judge, [])
    assert "failing chore" not in invoked("doctor", "--service", **asked).stdout
    store.close()
