"""The `grader` command as people run it: exit codes, streams, files."""

import json

import pytest

from grader_service.model.preflight import Preflight
from grader_service.model.verdict import Verdict
from tests.command_line import grader
from tests.e2e.conftest import EXAMPLES
from tests.factories import LOSES, WINS

pytestmark = pytest.mark.integration

REFERENCE = str(EXAMPLES / "reference_submission.ipynb")


def decided(*arguments, state_dir):
    """Runs it until the measurement decides: on a busy machine `inconclusive` is the right answer."""
    for _ in range(3):
        done = grader(*arguments, state_dir=state_dir)
        if done.returncode != 4:
            break
    return done


@pytest.mark.slow
@pytest.mark.alone
def test_the_reference_passes_in_docker(lab_image, state_dir, tmp_path, nothing_left):
    """The reference notebook is passed with tier A and four passed checks, exit 0, and stdout is the verdict alone."""
    report = tmp_path / "report.html"
    done = decided(
        "grade", REFERENCE, "--sandbox", "docker", "--device", "cpu", "--json", "-", "--report", str(report),
        state_dir=state_dir,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout[-3000:]
    verdict = Verdict.model_validate_json(done.stdout)
    assert (verdict.status, verdict.mode) == ("passed", "rehearsal")
    assert {check.id: check.outcome.value for check in verdict.checks} == {
        "jpeg_dataset": "passed",
        "cuda_batch": "passed",
        "throughput_ratio": "passed",
        "reflections": "passed",
    }
    assert {check.tier for check in verdict.checks if check.tier} == {"A"}
    assert verdict.score == verdict.max_score == 100.0
    assert verdict.provenance.image_digest.startswith("sha256:")
    assert verdict.provenance.versions["dali"] == "2.4.0"
    assert done.stderr == ""
    assert "What was measured" in report.read_text()
    saved = tmp_path / "verdict.json"
    saved.write_text(done.stdout)
    assert grader("verify", str(saved), state_dir=state_dir).returncode == 0
    saved.write_text(done.stdout.replace('"passed"', '"failed"', 1))
    assert grader("verify", str(saved), state_dir=state_dir).returncode == 1


@pytest.mark.slow
@pytest.mark.alone
def test_the_reference_passes_in_the_embedded_mode(state_dir, tmp_path):
    """`make demo`'s command needs no Docker, says that it does not isolate, shows progress and writes both files."""
    verdict_file, report = tmp_path / "v.json", tmp_path / "r.html"
    done = decided(
        "grade", REFERENCE, "--sandbox", "process", "--device", "cpu",
        "--json", str(verdict_file), "--report", str(report),
        state_dir=state_dir,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    assert "without isolation" in done.stderr
    assert "timing blocks" in done.stderr
    assert "PASSED" in done.stdout
    assert json.loads(verdict_file.read_text())["status"] == "passed"
    assert report.stat().st_size > 10_000


@pytest.mark.slow
def test_a_preflight_of_the_reference_in_docker(lab_image, state_dir, nothing_left):
    """Nothing is missing, the graph is carried, nothing is measured, and no pod is left."""
    done = grader("preflight", REFERENCE, "--sandbox", "docker", "--json", "-", state_dir=state_dir)
    assert done.returncode == 0, done.stderr + done.stdout[-3000:]
    found = Preflight.model_validate_json(done.stdout)
    assert (found.ready, found.isolated, found.graph.carried) == (True, True, True)
    assert found.batch.facts.declared_device == "gpu"
    assert "measure" not in found.timings_s
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["grade", "/nonexistent.py"], "is not a file"),
        (["grade", REFERENCE, "--lab", "nope"], "labs are: dali-classification-training, dali-pipelines"),
        (["grade", REFERENCE, "--steps", "nope", "--sandbox", "process"], "its steps are: baseline"),
        (["grade", REFERENCE, "--device", "tpu"], "Invalid value"),
        (["grade", REFERENCE, "--device", "cuda", "--sandbox", "process"], "no working NVIDIA driver"),
        (["checks", "run", "nope", "--observations", "-"], "has no check 'nope'"),
        (["checks", "run", "reflections", "--observations", "/nonexistent"], "cannot be read"),
        (["labs", "show", "nope"], "there is no lab"),
        (["verify", "/nonexistent"], "/nonexistent cannot be read: [Errno 2] No such file"),
        (["nope"], "No such command"),
    ],
)
def test_usage_errors_exit_2_with_one_message(arguments, text, state_dir):
    """Wrong usage names what was expected, and never shows a traceback."""
    done = grader(*arguments, state_dir=state_dir)
    assert done.returncode == 2
    assert text in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("empty.py", b"", "submission.empty"),
        ("slides.pptx", b"x", "submission.unknown_type"),
        ("broken.zip", b"PK\x03\x04 no", "archive.unreadable"),
        ("broken.ipynb", b"{", "notebook.unreadable"),
        ("broken.tar.gz", b"\x1f\x8b nothing", "archive.unreadable"),
    ],
)
def test_unusable_submissions_exit_5_with_a_signed_verdict(name, content, code, state_dir, tmp_path):
    """A rejection is a verdict too: code, feedback and signature, no pod was started."""
    path = tmp_path / name
    path.write_bytes(content)
    done = grader("grade", str(path), "--sandbox", "process", "--device", "cpu", "--json", "-", state_dir=state_dir)
    assert done.returncode == 5
    verdict = Verdict.model_validate_json(done.stdout)
    assert (verdict.status, verdict.code, verdict.score) == ("rejected", code, None)
    assert verdict.signature is not None


def test_our_failure_exits_3_and_is_not_the_learners(state_dir, tmp_path):
    """Without an engine the verdict says `error`, has no score, and the message says what to do."""
    path = tmp_path / "s.py"
    path.write_text("x = 1\n")
    nowhere = "unix:///nonexistent.sock"
    done = grader("grade", str(path), "--device", "cpu", "--json", "-", state_dir=state_dir, DOCKER_HOST=nowhere)
    assert done.returncode == 3
    assert "Docker engine" in done.stderr
    assert "Traceback" not in done.stderr


def test_checks_run_judges_lines(state_dir):
    """One observation in, one result out; a line that is no observation does not stop the others."""
    good = {"where_dali_wins": WINS, "where_dali_loses": LOSES}
    lines = [json.dumps(good), "{}", "not json", json.dumps({"where_dali_wins": [], "where_dali_loses": []})]
    done = grader("checks", "run", "reflections", "--observations", "-", state_dir=state_dir, text_in="\n".join(lines))
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["outcome"] for result in results] == ["passed", "error", "error", "failed"]
    assert results[1]["code"] == "observation.invalid"


def test_lists_and_schemas(state_dir, tmp_path):
    """Labs and checks can be listed, a lab shown and validated, schemas printed."""
    assert "dali-pipelines" in grader("labs", "list", state_dir=state_dir).stdout
    shown = json.loads(grader("labs", "show", "dali-pipelines", "--json", state_dir=state_dir).stdout)
    assert shown["id"] == "dali-pipelines"
    assert "throughput_ratio" in grader("checks", "list", state_dir=state_dir).stdout
    assert json.loads(grader("schema", "verdict", state_dir=state_dir).stdout)["title"] == "Verdict"
    broken = tmp_path / "lab.toml"
    broken.write_text('schema = "grader.lab/v1"\nid = "x"\n')
    done = grader("labs", "validate", str(broken), state_dir=state_dir)
    assert done.returncode == 2
    assert "version: missing" in done.stdout
