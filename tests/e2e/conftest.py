"""Grades whole submissions through the flow, with limits that a test can wait for."""

import textwrap
from pathlib import Path

import pytest

from checks.registry import Registry
from grader_service.grading.flow import Bench, grade
from grader_service.grading.progress import Silent
from grader_service.ingest.artifact import measure
from grader_service.labs.catalogue import load_lab
from grader_service.model.submission import Submission
from grader_service.signing import Signer
from sandbox.docker_options import STATE_LABEL

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def grade_with(tmp_path):
    """`grade_with(runner, code or path, steps, **limits)` → `Graded`, in a rehearsal.

    `measurement` changes fields of the plan, `threshold` the ratio that the lab wants; `lab` is another lab's id.
    """
    registry = Registry()
    signer = Signer.from_folder(tmp_path / "keys")

    def run(
        runner,
        source,
        steps=(),
        *,
        lab="dali-pipelines",
        filename="submission.py",
        measurement=None,
        threshold=None,
        **limits,
    ):
        if isinstance(source, Path):
            path = source
        else:
            path = tmp_path / filename
            path.write_bytes(textwrap.dedent(source).encode() if isinstance(source, str) else source)
        lab = load_lab(lab, registry)
        lab = lab.model_copy(update={"limits": lab.limits.model_copy(update=limits)})
        lab = lab.model_copy(update={"measurement": lab.measurement.model_copy(update=measurement or {})})
        if threshold is not None:
            lab = with_threshold(lab, threshold)
        artifact = measure(path)
        submission = Submission(
            submission_id="test:1",
            lab=lab.id,
            filename=path.name,
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
            steps=tuple(steps),
        )
        return grade(submission, artifact, Bench(lab, registry, runner, "cpu", signer), Silent())

    return run


def with_threshold(lab, threshold):
    """The lab with another ratio to exceed."""
    steps = [
        step.model_copy(
            update={
                "checks": tuple(
                    check.model_copy(update={"params": {**check.params, "threshold": threshold}})
                    if check.id == "throughput_ratio"
                    else check
                    for check in step.checks
                )
            }
        )
        for step in lab.steps
    ]
    return lab.model_copy(update={"steps": tuple(steps)})


def check_of(graded, check_id):
    """One check of a verdict."""
    assert graded.failure is None, graded.failure
    return next(check for check in graded.verdict.checks if check.id == check_id)


@pytest.fixture
def nothing_left(engine, state_dir):
    """After the test the engine holds no container and no volume of the grader with this state folder."""
    yield
    assert _of_grader(engine, state_dir) == set()


def _of_grader(engine, state_dir):
    ours = {"label": f"{STATE_LABEL}={state_dir.resolve()}"}
    return {
        *(container.name for container in engine.containers.list(all=True, filters=ours, ignore_removed=True)),
        *(volume.name for volume in engine.volumes.list(filters=ours)),
    }


PLAN = {"block_s": 0.2, "looks": (3,), "extension_blocks": 0, "alpha_pass": 0.4}
"""Short, and easily satisfied: what is tested is what was counted, not how fast this machine is."""


@pytest.fixture
def graded(grade_with, forked_runner):
    """`graded(source)` → (checks by id, evidence), with short windows and a threshold that every host can reach."""

    def run(*parts, threshold=0.02):
        source = "\n".join(textwrap.dedent(part) for part in parts)
        done = grade_with(forked_runner, source, ("pipeline", "benchmark"), measurement=PLAN, threshold=threshold)
        assert done.failure is None, done.failure
        return {check.id: check for check in done.verdict.checks}, done.evidence

    return run
