"""The levels themselves: reading reports, dealing shards, what a change touches, and what a run leaves."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.levels import ci, levels, shards, touched
from tests.levels.__main__ import in_memory, main
from tests.levels.parts import ROOT, Done, Part, Test, pytest_part, run
from tests.levels.record import Record
from tests.levels.shards import divided, parsed, recorded, unit_of

REPORT = """<testsuites><testsuite>
<testcase classname="tests.model.test_models" name="test_a[1/2]" time="0.5"/>
<testcase classname="tests.model.test_models.TestB" name="test_c" time="2"><failure message="1&#10;2"/></testcase>
<testcase classname="tests.gone" name="test_d" time="0"><skipped/></testcase>
</testsuite></testsuites>"""


def test_a_report_names_tests_as_pytest_takes_them(tmp_path):
    """Path, class and name; an error of a fixture is a failure."""
    path = tmp_path / "report.xml"
    part = Part("some", (sys.executable, "-c", f"open({str(path)!r}, 'w').write({REPORT!r}); exit(1)"), path)
    done = run(part, {})
    assert not done.ok
    assert [(test.id, test.outcome, test.why) for test in done.tests] == [
        ("tests/model/test_models.py::test_a[1/2]", "passed", ""),
        ("tests/model/test_models.py::TestB::test_c", "failed", "1"),
        ("tests.gone::test_d", "skipped", ""),
    ]


@pytest.mark.parametrize(("status", "ok"), [(0, True), (1, False), (5, True)])
def test_a_part_without_tests_is_no_failure(tmp_path, status, ok):
    """A shard may hold none that run alone: pytest ends with 5 then, and writes no test."""
    part = Part("some", (sys.executable, "-c", f"exit({status})"), tmp_path / "report.xml")
    assert run(part, {}).ok is ok
    assert run(Part("no tests", part.command), {}).ok is (status == 0)


def test_a_process_that_dies_ends_the_part(tmp_path):
    """With the failure of what it ran, whatever else there is to run."""
    for name, code in (("dies", "__import__('os')._exit(9)"), ("waits", "pass"), ("also", "pass")):
        (tmp_path / f"test_{name}.py").write_text(f"def test_a(): {code}\ndef test_b(): pass\n")
    report = tmp_path / "report.xml"
    part = pytest_part("dying", "-p", "no:cacheprovider", f"--junitxml={report}", str(tmp_path))
    done = run(replace(part, report=report), os.environ)
    assert [test.outcome for test in done.tests].count("failed") == 1
    assert not done.ok


def test_shards_hold_every_unit_once_and_are_of_one_size():
    """By what is recorded; a unit that is new counts as a usual one."""
    seconds = {f"tests/test_{number}.py": float(number) for number in range(1, 40)}
    shards = divided([*seconds, "tests/test_new.py"], 6, seconds)
    assert sorted(unit for shard in shards for unit in shard) == sorted([*seconds, "tests/test_new.py"])
    sums = [sum(seconds.get(unit, 20.0) for unit in shard) for shard in shards]
    assert max(sums) - min(sums) <= 20.0
    assert divided(reversed([*seconds, "tests/test_new.py"]), 6, seconds) == shards


def test_every_test_of_this_repository_is_in_one_shard():
    """Files, and the cases and defences of the corpus by themselves."""
    units = levels.units()
    dealt = [unit for shard in divided(units, 6, recorded()) for unit in shard]
    assert sorted(dealt) == units
    for path in (ROOT / "tests").rglob("test_*.py"):
        file = str(path.relative_to(ROOT))
        assert file == shards.QUICK_CORPUS or any(unit.partition("::")[0] == file for unit in units), file
    assert unit_of("tests/corpus/test_whole.py::test_case[V01-literal]") in units
    assert unit_of("tests/levels/test_levels.py::test_x[1]") == "tests/levels/test_levels.py"
    assert unit_of(f"{shards.QUICK_CORPUS}::test_case[C06]") != shards.QUICK_CORPUS


def test_seconds_are_recorded_by_unit(tmp_path, monkeypatch):
    """The newest stand; what did not run keeps its own, and the quick corpus, which is in no shard, has none."""
    monkeypatch.setattr(shards, "DURATIONS", tmp_path / "durations.json")
    shards.DURATIONS.write_text(json.dumps({"tests/levels/test_levels.py": 9.0, "tests/test_gate.py": 2.0}))
    file = "tests/levels/test_levels.py"
    took = [(f"{file}::test_a", 1.0), (f"{file}::test_b", 2.0), (f"{file}::test_a", 4.0)]
    took += [("tests/corpus/test_whole.py::test_case[V01]", 3.0), (f"{shards.QUICK_CORPUS}::test_case[V01]", 5.0)]
    shards.write([Test(id_, seconds, "passed") for id_, seconds in took])
    assert recorded() == {file: 6.0, "tests/test_gate.py": 2.0, "tests/corpus/test_whole.py::test_case[V01]": 3.0}


@pytest.mark.parametrize("text", ["", "1", "0/6", "7/6", "a/b", "1/6/2", "-1/6"])
def test_a_shard_that_is_none_is_refused(text):
    """With what was expected."""
    with pytest.raises(ValueError, match="expected k/n"):
        parsed(text)
    assert parsed("2/6") == (2, 6)


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("tests/model/test_models.py", "tests/model/test_models.py"),
        ("tests/store/conftest.py", "tests/store/test_store.py"),
        ("grader_service/measure/sequential_test.py", "tests/measure/test_sequential_test.py"),
        ("tests/corpus/cheats/v_claims.py", "tests/corpus/test_whole.py::test_case[V01-literal]"),
        ("sandbox/guest/trusted/scanner.py", "tests/corpus/test_defences.py::test_without[decoder-time]"),
        ("tests/corpus/defences.d/m_patches.toml", "tests/corpus/test_defences.py::test_without[no-bytecode]"),
        ("examples/failing/slow_pipeline.py", "tests/e2e/test_failing_examples.py"),
        ("examples/platforms/php/platform.php", "tests/platform/test_examples.py"),
        ("docs/writing-checks.md", "tests/authoring/test_page.py"),
    ],
)
def test_what_a_change_touches(path, unit):
    """Its own tests, those of the modules that it changes, and the defences and cases in these."""
    found = touched.touched([path], levels.units())
    assert unit in found
    assert len(found) < 200
    assert touched.touched(["README.md"], levels.units()) == []


class Clock:
    """A record whose time is that of its parts."""

    def __init__(self):
        self.seconds = 0.0
        self.not_begun, self.ran = [], []

    def run(self, _, parts):
        """Takes a minute and a half for each."""
        for part in parts:
            self.ran.append(part.name)
            self.seconds += 90.0


def ci_over(monkeypatch, units, limit_s, touched_units):
    """The record of what CI runs of these units, each of which was recorded with 200 s."""
    clock = Clock()
    monkeypatch.setattr(ci, "LIMIT_S", limit_s)
    monkeypatch.setattr(ci, "recorded", lambda: dict.fromkeys(units, 200.0))
    monkeypatch.setattr(ci, "changed_files", lambda base: [])
    monkeypatch.setattr(ci, "touched", lambda paths, among: touched_units)
    monkeypatch.setattr(ci.levels, "units", lambda: units)
    monkeypatch.setattr(ci.levels, "of_units", lambda chunk, name: [Part(unit, ()) for unit in chunk])
    ci.more(clock, None, 1, clock.run)
    return clock


def test_ci_begins_nothing_that_would_end_too_late(monkeypatch):
    """What is left out is named."""
    clock = ci_over(monkeypatch, [f"tests/test_{number}.py" for number in range(20)], 600.0, [])
    assert 0 < len(clock.ran) < 20
    assert clock.seconds <= 600.0 + 90.0
    (told,) = clock.not_begun
    assert f"{20 - len(clock.ran)} of 20 units, for want of time" in told


def test_what_was_touched_and_not_begun_is_still_of_its_shard(monkeypatch):
    """Nothing falls between the two."""
    units = [f"tests/test_{number}.py" for number in range(12)]
    clock = ci_over(monkeypatch, units, 1200.0, units)
    assert sorted(clock.ran) == sorted(units)
    assert "touched" in clock.not_begun[0]


def test_chunks_are_of_one_length():
    """Or hold the one unit that takes longer."""
    units = ["tests/a.py::test[1]", "tests/b.py", "tests/a.py::test[2]", "tests/c.py"]
    assert list(ci.chunked(units, {"tests/b.py": 10_000.0})) == [
        ["tests/a.py::test[1]"],
        ["tests/b.py"],
        ["tests/a.py::test[2]", "tests/c.py"],
    ]


def test_a_run_that_did_not_end_has_no_result(tmp_path):
    """What was killed half way has not passed."""
    record = Record("test", tmp_path / "record.json")
    record.parts.append(Done("types", 3.0, ok=True))
    results = []
    for ended in (False, True):
        record.write(ended=ended)
        results.append(json.loads((tmp_path / "record.json").read_text())["result"])
    assert results == ["unfinished", "passed"]


def test_the_record_says_what_was_run_and_names_failures_last(tmp_path):
    """As JSON, and as lines."""
    path = tmp_path / "record.json"
    record = Record("test", path)
    record.parts.append(Done("types", 3.0, ok=True))
    tests = [Test(f"tests/a.py::test_{number}", float(number), "passed") for number in range(40)]
    tests.append(Test("tests/a.py::test_x", 1.0, "failed", "KeyError: 3"))
    record.parts.append(Done("tests", 60.0, ok=False, tests=tests))
    record.not_begun.append("shard 2 of 6: tests/b.py")
    record.write()
    document = json.loads(path.read_text())
    assert (document["ok"], document["counts"], document["failed"]) == (
        False,
        {"passed": 40, "failed": 1},
        ["tests/a.py::test_x - KeyError: 3"],
    )
    assert [part["seconds"] for part in document["parts"]] == [3.0, 60.0]
    assert len(document["commit"]) == 40
    assert isinstance(document["clean"], bool)
    assert len(document["slowest"]) == 30
    assert document["slowest"][0] == {"test": "tests/a.py::test_39", "seconds": 39.0}
    lines = record.summary()
    assert "not begun: shard 2 of 6: tests/b.py" in lines
    assert lines[-3:-1] == ["failed test: tests/a.py::test_x - KeyError: 3", "40 tests passed, 1 failed, 0 skipped"]
    assert lines[-1].startswith("FAILED: tests, after")


def record_of(parts, monkeypatch, tmp_path):
    """What `make check` leaves that has these parts, of which one fails."""
    monkeypatch.setattr("sys.argv", ["levels", "check"])
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("tests.levels.__main__.Record", lambda level: Record(level, tmp_path / "record.json"))
    monkeypatch.setattr(levels, "check", lambda: parts)
    assert main() == 1
    return json.loads((tmp_path / "record.json").read_text())


@pytest.mark.parametrize(("failfast", "begun"), [("1", ["one"]), ("", ["one", "two", "four"])])
def test_a_failed_part_ends_what_needs_it_and_with_failfast_the_run(monkeypatch, tmp_path, failfast, begun, capfd):
    """The others go on, so that one run shows all that is wrong."""
    monkeypatch.setenv("FAILFAST", failfast)
    fine = (sys.executable, "-c", "pass")
    parts = [
        Part("one", (sys.executable, "-c", "exit(1)")),
        Part("two", fine),
        Part("three", fine, after="one"),
        Part("four", fine, after="two"),
    ]
    document = record_of(parts, monkeypatch, tmp_path)
    assert [part["name"] for part in document["parts"]] == begun
    assert len(document["not_begun"]) == 4 - len(begun)
    assert "FAILED: one" in capfd.readouterr().err.splitlines()[-1]


def test_a_part_beside_others_is_waited_for_and_told(monkeypatch, tmp_path, capfd):
    """Its failure is one, though it ends last; what it prints is not mixed with the others."""
    monkeypatch.delenv("FAILFAST", raising=False)
    slow = (sys.executable, "-c", "import time; time.sleep(0.5); print('of the slow one'); exit(1)")
    parts = [Part("slow", slow, beside=True), Part("quick", (sys.executable, "-c", "print('of the quick one')"))]
    document = record_of(parts, monkeypatch, tmp_path)
    assert [part["name"] for part in document["parts"]] == ["quick", "slow"]
    said = capfd.readouterr()
    assert said.out == "of the quick one\nof the slow one\n"
    assert "FAILED: slow" in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("free", "named", "used"), [(8 << 30, None, True), (1 << 30, None, False), (8 << 30, "/var/tmp", False)]
)
def test_temporary_files_of_tests_lie_in_memory(monkeypatch, free, named, used):
    """Where there is room and nobody has named another place; they are gone afterwards."""
    monkeypatch.delenv("TMPDIR", raising=False)
    if named is not None:
        monkeypatch.setenv("TMPDIR", named)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    with in_memory() as told:
        assert set(told) == ({"TMPDIR"} if used else set())
        folder = Path(told.get("TMPDIR", "/dev/shm/none"))
        assert folder.parent == Path("/dev/shm")
        assert folder.is_dir() is used
    assert not folder.exists()


def test_wrong_arguments_are_refused(monkeypatch, capfd):
    """Before anything runs."""
    monkeypatch.setattr("sys.argv", ["levels", "all", "--shard", "9/6"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "expected k/n" in capfd.readouterr().err


def test_what_begins_late_is_short(monkeypatch):
    """Files that were never recorded may take minutes; those that are `slow` as a whole are not even imported."""
    monkeypatch.setattr(shards, "recorded", lambda: {"tests/levels/test_levels.py": 5.0, "tests/test_docs.py": 9.0})
    listed = {}
    monkeypatch.setattr(levels, "_listed", lambda name, arguments: listed.setdefault(name, arguments) and name)
    levels.test()
    assert listed["files"][0] == shards.QUICK_CORPUS
    assert listed["files"][-2:] == ["tests/test_docs.py", "tests/levels/test_levels.py"]
    assert "tests/e2e/test_failing_examples.py" in listed["files"]
    assert "tests/held_out/test_loaders.py" not in listed["files"]


def test_levels_name_parts_that_exist():
    """Every part that is waited for is there, and each level's selection is one that pytest takes."""
    names = {part.name for part in levels.test()}
    assert {part.after for part in levels.test()} <= {None, *names}
    assert pytest_part("a b", "-m", "slow").report == ROOT / "build" / "tests" / "a-b.xml"
    assert Path(shards.QUICK_CORPUS).name in {path.name for path in (ROOT / "tests" / "corpus").iterdir()}
