"""`grader grade --check`: parameters, the added step, and what the plugin for pytest costs."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.authoring.evidence import EvidenceBuilder
from checks.registry import Registry
from grader_service.authoring.trying import OneCheck, judge_evidence, read_params, with_tried
from grader_service.errors import ConfigurationError, UsageError
from grader_service.labs.catalogue import load_lab
from tests.authoring.conftest import EXAMPLES, PLUGIN
from tests.command_line import invoked

pytestmark = pytest.mark.integration

CHECK = EXAMPLES / "grader-check-stable-batches" / "src" / "grader_check_stable_batches" / "check.py"
NAMES = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
VALUES = st.integers(-(2**60), 2**60) | st.booleans() | st.text(st.characters(codec="ascii", categories=("L", "N")))


@given(params=st.dictionaries(NAMES, VALUES | st.lists(st.integers(0, 9), max_size=3), max_size=4))
def test_values_are_those_of_toml(params):
    """Whole numbers, booleans, quoted strings and lists come back as they are written in TOML."""
    assert read_params([f"{name}={json.dumps(value)}" for name, value in params.items()]) == params


@given(pair=st.text(max_size=20))
def test_any_text_is_a_parameter_or_refused(pair):
    """Nothing else happens than a parameter or a message that shows the form."""
    try:
        found = read_params([pair])
    except UsageError:
        found = {pair.partition("=")[0]: None}
    assert list(found) == [pair.partition("=")[0]]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (["kind=CHW"], {"kind": "CHW"}),
        (["share=0.5", "least=3"], {"share": 0.5, "least": 3}),
        (["word=two-parts"], {"word": "two-parts"}),
        (["mean=[0.485, 0.456]"], {"mean": [0.485, 0.456]}),
    ],
)
def test_bare_words_are_strings(pairs, expected):
    """A shell needs no quotes around a word."""
    assert read_params(pairs) == expected


@pytest.mark.parametrize("pairs", [["least"], ["=3"], ["a b=3"], ["a=[1"], ["a=1", "a=2"]])
def test_other_forms_are_refused(pairs):
    """No key, no value, no TOML, or the same key twice."""
    with pytest.raises(UsageError, match="--param"):
        read_params(pairs)


@pytest.fixture(scope="module")
def lab():
    """The first lab."""
    return load_lab("dali-pipelines", Registry())


def test_the_step_comes_last_and_is_judged_by_the_file(lab):
    """The lab's own steps stay; the tried one has a point of its own."""
    registry = Registry(files=[CHECK])
    loaded = registry.load("stable_batches")
    changed = with_tried(lab, loaded, {"batches": 3}, ())
    assert [step.id for step in changed.steps] == [*(step.id for step in lab.steps), "tried"]
    assert changed.steps[-1].checks[0].params == {"batches": 3}
    assert OneCheck(loaded).load("stable_batches") is loaded
    assert re.fullmatch(r"1\.0\.0 \(file check\.py [0-9a-f]{12}\)", loaded.version_text)


def test_a_check_that_the_lab_has_is_tried_alone(lab):
    """Two checks of one id would be one too many; with `--steps tried` the file takes the place of the other."""
    loaded = Registry().load("jpeg_dataset")
    with pytest.raises(UsageError, match="--steps tried"):
        with_tried(lab, loaded, {}, ())
    with pytest.raises(UsageError, match="--steps tried"):
        with_tried(lab, loaded, {}, ("baseline", "tried"))
    alone = with_tried(lab, loaded, {"min_images": 5}, ("tried",))
    assert [check.id for step in alone.steps for check in step.checks].count("jpeg_dataset") == 1
    assert alone.selected(("tried",))[0].checks[0].params == {"min_images": 5}


def test_wrong_parameters_are_named(lab):
    """Which parameter, and what is wrong with it."""
    loaded = Registry(files=[CHECK]).load("stable_batches")
    with pytest.raises(UsageError, match=r"batches: .*valid integer"):
        with_tried(lab, loaded, {"batches": "many"}, ())
    with pytest.raises(UsageError, match='batchs: no such parameter; did you mean "batches"'):
        with_tried(lab, loaded, {"batchs": 1}, ())
    with pytest.raises(UsageError, match=r"batches: .*valid integer"):
        with_tried(lab, loaded, {"batches": True}, ())
    with pytest.raises(ConfigurationError, match="batches"):
        judge_evidence(loaded, EvidenceBuilder().build(), {"batches": 0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--param", "least=3"], "--param needs --check"),
        (["--check", "/nowhere/check.py"], "/nowhere/check.py"),
        (["--check", str(CHECK), "--param", "batches=99"], "batches"),
        (["--steps", "tried"], "has no step tried"),
    ],
)
def test_the_command_refuses_before_anything_runs(tmp_path, options, message):
    """A usage error says what is wrong; no pod was started."""
    submission = tmp_path / "submission.py"
    submission.write_text("x = 1\n")
    with pytest.raises(UsageError, match=re.escape(message)):
        invoked("grade", str(submission), "--device", "cpu", "--sandbox", "process", *options)


def test_the_plugin_costs_nothing_where_it_is_not_used():
    """Loading it imports neither pydantic nor anything of the grader but itself."""
    program = f"import json, sys, {PLUGIN}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(done.stdout))
    assert {name for name in loaded if name.split(".")[0] in ("grader_service", "checks", "sandbox")} == {
        "grader_service", "grader_service.authoring", PLUGIN,
    }  # fmt: skip
    assert not loaded & {"pydantic", "numpy", "torch", "docker", "hypothesis"}
