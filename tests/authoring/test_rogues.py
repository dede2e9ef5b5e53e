"""The conformance suite catches checks that break their promises, and says what to do."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from checks.authoring.material import read_recorded
from checks.authoring.target import find_targets, load_target
from checks.authoring.trial import Job, Report
from grader_service.authoring.conformance import conform
from grader_service.errors import ConfigurationError, UsageError
from tests.authoring.rogues import record, write_project

pytestmark = [pytest.mark.slow, pytest.mark.integration]

HOLDS = {"passed", "skipped", "advice"}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Each rogue's report, by its id."""
    folder = write_project(tmp_path_factory.mktemp("rogues"))
    record(folder)
    path = list(sys.path)
    found = {}
    for text in find_targets(str(folder)):
        name = text.rpartition(":")[2]
        if name == "hangs":
            continue  # three times the limit of a case
        found[name] = conform(text, controls=False, accept=name == "impure")
    sys.path[:] = path
    assert not [*folder.rglob("conformance.lock")]
    return found


def properties(reports, name):
    """The properties of one rogue that do not hold, by name."""
    return {one.name: one for one in reports[name].properties if one.status not in HOLDS}


def test_impurity_is_named(reports):
    """Each thing that judging touched is listed, and that the recorded results are others."""
    found = properties(reports, "impure")
    text = found["purity"].text
    for part in ("/etc/hostname", "environment", "random.random"):
        assert part in text
    assert "and 2 more" in text
    assert set(found) == {"purity", "observations", "version"}
    assert "nothing was accepted while other properties fail" in found["version"].text
    assert "two: expected failed impure.few, got passed impure.ok" in found["observations"].text
    assert next(one for one in reports["impure"].properties if one.name == "docstring").status == "advice"


def test_leaks_and_wrong_forms_are_named(reports):
    """The seed and hidden parameters in feedback; an empty feedback; a score that does not fit; sets in details."""
    found = properties(reports, "talks")
    assert set(found) == {"leaks", "limits", "observations"}
    for part in (
        "talks.ok shows the seed of the held-out images",
        "talks.few shows the hidden parameter least",
        "talks.few shows the hidden parameter word",
    ):
        assert part in found["leaks"].text
    for part in ("the outcome of its feedback is empty", "its score 1.0", "its details are no JSON"):
        assert part in found["limits"].text


def test_codes_that_are_not_declared_are_named(reports):
    """And a declared one that comes with another outcome; a check that declares none is advised to."""
    found = properties(reports, "strays")["codes"]
    assert "strays.surprise is not in `codes`" in found.text
    assert "strays.maybe came as failed; its meaning says unverified" in found.text
    assert "strays.ok" not in found.text
    assert "`codes`" in found.todo
    (silent,) = (one for one in reports["shuffles"].properties if one.name == "codes")
    assert (silent.status, silent.text) == ("advice", "the check does not say which codes it can answer with")


def test_feedback_that_is_long_or_says_nothing_to_do_is_named(reports):
    """As advice: checks that answer with one text, as they did before there were parts, go on."""
    (found,) = (one for one in reports["strays"].properties if one.name == "feedback")
    assert found.status == "advice"
    for part in ("strays.maybe says nothing to do next", "strays.maybe has more than 60 words", "strays.surprise says"):
        assert part in found.text
    assert "strays.ok" not in found.text
    assert "next=" in found.todo


def test_the_order_of_sets_is_found(reports):
    """Two processes with different hash seeds disagree, and nothing else is wrong with the judging."""
    found = properties(reports, "shuffles")
    assert "the same outcome with another text" in found["determinism"].text
    assert "purity" not in found


def test_crashes_of_the_code_are_found(reports):
    """A part that is not there, a division by zero, an answer that is none: with their lines."""
    found = properties(reports, "raises")
    assert "AttributeError at raises.py, line" in found["missing"].text
    assert "(the pod ended: exited)" in found["missing"].text
    for part in ("IndexError at raises.py", "ZeroDivisionError at raises.py", "a NoneType, not a Result"):
        assert part in found["hostile"].text
    assert "read_probe" in found["missing"].todo


def test_a_check_that_ends_its_process_is_reported(reports):
    """The suite survives it."""
    assert "ended with 3" in properties(reports, "ends")["judging"].text


def test_broken_contracts_and_lost_probes_are_named(reports):
    """A check that does not load has one property; a probe that is not there is named."""
    (only,) = reports["broken"].properties
    assert (only.name, only.status) == ("loads", "failed")
    assert "its id is 'another'" in only.text
    assert "no probe 'nowhere' is installed" in properties(reports, "ends")["probes"].text


def test_everything_that_failed_says_what_to_do(reports):
    """A property that does not hold has a sentence on what to do, and the report as a whole has failed."""
    for report in reports.values():
        assert not report.passed
        assert all(one.todo for one in report.properties if one.status != "passed")


@pytest.mark.parametrize("text", ["nothing_of_that_name", "/nowhere/check.py"])
def test_what_is_not_there_is_a_usage_error(text):
    """Neither a check nor a path: the message lists what is installed."""
    with pytest.raises(UsageError, match="jpeg_dataset"):
        find_targets(text)


def test_a_folder_without_a_check_is_a_usage_error(tmp_path):
    """The message says what was looked for."""
    with pytest.raises(UsageError, match=r"expected a pyproject.toml"):
        find_targets(str(tmp_path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: this is not JSON"),
        ('{"name": "a", "expect": {"outcome": "passed", "code": "a.b"}}', "expected either `observation`"),
        ('{"name": "a", "observation": {}, "probes": {}, "expect": {"outcome": "passed", "code": "a.b"}}', "either"),
        ('{"name": "a", "observation": {}, "expect": {"outcome": "great", "code": "a.b"}}', "expect.outcome"),
        ('{"name": "a", "observation": {}, "expect": {"outcome": "passed", "code": "ok"}}', "expect.code"),
    ],
)
def test_wrong_material_is_named_with_its_line(tmp_path, line, message):
    """An author's file that cannot be read is no property of the check."""
    folder = write_project(tmp_path / "project")
    (folder / "rogues" / "shuffles").mkdir()
    (folder / "rogues" / "shuffles" / "observations.jsonl").write_text(line + "\n")
    target = load_target(f"file:{folder}/rogues/shuffles.py")
    with pytest.raises(ConfigurationError, match=r"observations\.jsonl, line 1") as caught:
        read_recorded(target)
    assert message in str(caught.value)


def test_a_judge_without_an_end_is_stopped(tmp_path):
    """The case is said to be slow, the others are answered, and after three of them the trial ends."""
    folder = write_project(tmp_path / "project")
    record(folder)
    job = Job(target=f"project:{folder}:hangs", watch=False, case_limit_s=2.0)
    (tmp_path / "job.json").write_text(job.model_dump_json())
    command = [sys.executable, "-P", "-m", "checks.authoring.trial", str(tmp_path / "job.json"), str(tmp_path / "out")]
    subprocess.run(command, check=True, timeout=120, cwd=tmp_path)
    report = Report.model_validate_json((tmp_path / "out").read_text())
    first, second = report.happened[:2]
    assert (first.name, first.status) == ("one", "answered")
    assert (second.name, second.status, second.problem) == ("two", "slow", "it was not done within 2 s")
    assert sum(one.status == "slow" for one in report.happened) == 3
    assert report.happened[-1].status == "slow"


def test_purity_sees_each_thing_and_allows_what_is_pure():
    """One process tries each: what is forbidden is seen, what is pure is not."""
    program = textwrap.dedent(
        """
        import json, os, random, socket, subprocess, sys, threading, time, uuid, datetime, pathlib, re, hashlib
        from datetime import date, datetime as clock
        from checks.authoring.purity import Watch
        import checks

        watch = Watch((pathlib.Path(checks.__file__).parent,))
        tries = {
            "open": lambda: open("/etc/hostname").close(),
            "write": lambda: open("/dev/null", "w").close(),
            "package data": lambda: open(checks.__file__).close(),
            "socket": lambda: socket.socket().close(),
            "process": lambda: subprocess.run(["true"]),
            "system": lambda: os.system("true"),
            "thread": lambda: threading.Thread(target=int).start(),
            "time": time.time, "perf": time.perf_counter_ns, "now": datetime.datetime.now,
            "aliased": clock.utcnow, "today": date.today, "random": random.random,
            "choice": lambda: random.choice([1, 2]), "uuid": uuid.uuid4, "urandom": lambda: os.urandom(2),
            "getenv": lambda: os.getenv("HOME"), "print": lambda: print(end=""),
            "sleep": lambda: time.sleep(0), "listdir": lambda: os.listdir("/"),
            "seeded": lambda: random.Random(3).random(), "regular": lambda: re.compile("a+b").match("aab"),
            "digest": lambda: hashlib.sha256(b"x").hexdigest(), "parse": lambda: clock.fromisoformat("2026-01-01"),
            "json": lambda: json.loads("[1]"), "sort": lambda: sorted([2, 1]),
        }
        found = {}
        for strict in (False, True):
            for name, attempt in tries.items():
                watch.seen.clear()
                with watch.on(strict=strict, closely=True):
                    attempt()
                found[f"{name}{' strictly' if strict else ''}"] = sorted(watch.seen)
        sys.stdout.write(json.dumps(found))
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    found = json.loads(done.stdout)
    pure = {"seeded", "regular", "digest", "parse", "json", "sort"}
    for name, seen in found.items():
        plain = name.removesuffix(" strictly")
        assert bool(seen) is (plain not in pure and name != "package data"), (name, seen)
