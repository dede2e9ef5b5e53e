"""`grader checks new`: what it makes is green at once, and nothing is ever overwritten."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checks.authoring.scaffold import ProbeChoice, create_file, create_package
from checks.registry import load_file
from grader_service.errors import UsageError
from grader_service.model.evidence import ProbeRecord
from tests.checks.judged import judged
from tests.factories import a_discovery, an_evidence


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("probe", [ProbeChoice.NONE, ProbeChoice.GRAPH])
def test_a_new_file_conforms_at_once(clean_place, tmp_path, probe):
    """The suite and the tests beside it pass, whatever a lab's author makes of the default later."""
    clean_place.run(f"grader checks new first_try --probe {probe.value}", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"first_try.py", "test_first_try.py"}
    assert "Nothing failed." in clean_place.run("grader checks test first_try.py", tmp_path).stdout
    assert "3 passed" in clean_place.run("pytest -q -p no:cacheprovider", tmp_path).stdout
    check = tmp_path / "first_try.py"
    changed = re.sub(r"\] = (1|16)\b", "] = 7", check.read_text())
    assert changed != check.read_text()
    check.write_text(changed)
    assert "3 passed" in clean_place.run("pytest -q -p no:cacheprovider", tmp_path).stdout


@pytest.mark.slow
@pytest.mark.integration
def test_a_new_project_conforms_at_once(clean_place, tmp_path):
    """The linter, the suite with its controls, the project's own tests."""
    clean_place.run("grader checks new first_try --probe learner --package", tmp_path)
    folder = tmp_path / "grader-check-first-try"
    clean_place.run("ruff check --isolated --no-cache .", folder)
    report = json.loads(clean_place.run("grader checks test --json", folder).stdout)
    states = {one["name"]: one["status"] for one in report["properties"]}
    assert states.pop("version") == "skipped"
    assert set(states.values()) == {"passed"}
    assert "controls" in states
    shown = clean_place.run('pytest -q -p no:cacheprovider -k "not control"', folder).stdout
    assert "3 passed, 2 deselected" in shown


OWN_TEST = """
from grader_check_first_try.check import first_try


def test_source_code_is_run(run_submission, judge_check):
    evidence = run_submission('''
        from torch.utils.data import DataLoader
        small = DataLoader([1, 2, 3, 4], num_workers=1)
        ''', first_try, least=2)
    assert evidence.discovery.loaders[0].name == "small"
    assert judge_check(first_try, evidence, least=1).code == "first_try.ok"
    assert judge_check("src/grader_check_first_try/check.py", evidence, least=2).code == "first_try.too_few"


def test_what_does_not_come_out_as_expected_is_said(judged_control):
    assert "expected unverified first_try.odd, got passed first_try.ok" in judged_control.problem
    assert judged_control.result.code == "first_try.ok"


def pytest_generate_tests(metafunc):
    if "judged_control" in metafunc.fixturenames:
        from checks.authoring.material import Control
        from checks.authoring.target import target_of
        from grader_service.authoring.controls import control_cases
        import dataclasses
        case = control_cases(target_of(first_try))[0]
        odd = Control(file=case.control.file, outcome="unverified", code="first_try.odd")
        metafunc.parametrize("judged_control", [dataclasses.replace(case, control=odd)], indirect=True)
"""


@pytest.mark.slow
@pytest.mark.integration
def test_the_fixtures_run_submissions_and_controls(clean_place, tmp_path):
    """A new project's own tests with its controls, and one of the author's that runs source code."""
    clean_place.run("grader checks new first_try --package", tmp_path)
    folder = tmp_path / "grader-check-first-try"
    (folder / "tests" / "test_own.py").write_text(OWN_TEST)
    assert "7 passed" in clean_place.run("pytest -q -p no:cacheprovider", folder).stdout
    assert "Nothing failed." in clean_place.run("grader checks test --skip-controls", folder).stdout


@pytest.mark.parametrize("probe", list(ProbeChoice))
def test_the_linter_is_content_with_every_kind(clean_place, tmp_path, probe):
    """Default settings, from the project's folder and from the one above, and the formatter agrees."""
    create_file("second_try", probe, tmp_path)
    folder = create_package("first_try", probe, tmp_path)
    for where in (folder, tmp_path):
        clean_place.run("ruff check --no-cache . && ruff format --no-cache --check .", where)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert set(project["entry-points"]) == {"grader.checks", "grader.labs"}
    for value in (value for points in project["entry-points"].values() for value in points.values()):
        module = value.partition(":")[0].replace(".", "/")
        assert (folder / "src" / module).is_dir() or (folder / "src" / f"{module}.py").is_file()
    written = "".join(path.name + path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert re.search(r"\$\{|\.tmpl", written) is None


@pytest.mark.parametrize("there", ["grader-check-first-try", "first_try.py", "test_first_try.py"])
def test_what_is_there_stays(tmp_path, there):
    """A folder or a file of that name is not touched, and nothing is written beside it."""
    path = tmp_path / there
    if path.suffix:
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "check.py").write_text("mine")
    with pytest.raises(UsageError, match="is there already; nothing was written"):
        (create_file if path.suffix else create_package)("first_try", ProbeChoice.GRAPH, tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == [there]
    assert (path if path.suffix else path / "check.py").read_text() == "mine"


@pytest.mark.parametrize(
    "name",
    [
        "jpeg_dataset",
        "failed",
        "undecided",
        "resetting",
        "max",
        "class",
        "time",
        "Layout",
        "2fast",
        "a__b",
        "a-b",
        "",
        "x" * 41,
        "../up",
    ],
)
def test_unusable_names_are_refused(tmp_path, name):
    """Those of installed checks, of Python, of what a check's file uses, and of another form; nothing is written."""
    with pytest.raises(UsageError, match=re.escape(repr(name))):
        create_package(name, ProbeChoice.GRAPH, tmp_path)
    with pytest.raises(UsageError, match=re.escape(repr(name))):
        create_file(name, ProbeChoice.GRAPH, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("needs_gpu", "score"), [("", 0.0), ("Found no NVIDIA driver", None)])
def test_a_new_check_leaves_open_what_only_lacks_a_gpu(tmp_path, needs_gpu, score):
    """A rehearsal of code that stopped takes no points."""
    made, _ = create_file("first_try", ProbeChoice.LEARNER, tmp_path)
    loaded = load_file(made)
    probe = loaded.check.own_probes["resetting"]
    record = ProbeRecord(
        id="resetting", version=probe.version, site=probe.site, sha256=probe.sha256, status="ok",
        observations={"names": [], "by_hand": []},
    )  # fmt: skip
    evidence = an_evidence(discovery=a_discovery(ran="raised", needs_gpu=needs_gpu), probes=(record,))
    result = judged(loaded.check, evidence)
    assert (result.code, result.score) == ("run.not_reached", score)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(max_size=45) | st.from_regex(r"[a-z_0-9]{1,12}", fullmatch=True))
def test_any_name_is_refused_or_makes_a_project_inside(tmp_path_factory, name):
    """Whatever the name, nothing is written outside the folder that was named."""
    into = tmp_path_factory.mktemp("into")
    try:
        folder = create_package(name, ProbeChoice.NONE, into / "inner")
    except UsageError:
        assert list(into.iterdir()) == []
        return
    assert folder.parent == into / "inner"
    assert Path(folder, "src", f"grader_check_{name}", "check.py").is_file()
    assert [path.name for path in into.iterdir()] == ["inner"]
