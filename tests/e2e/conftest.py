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

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def grade_with(tmp_path):
    """`grade_with(runner, code or path, steps, **limits)` → `Graded`, in a rehearsal."""
    registry = Registry()
    signer = Signer.from_folder(tmp_path / "keys")

    def run(runner, source, steps=(), *, filename="submission.py", **limits):
        if isinstance(source, Path):
            path = source
        else:
            path = tmp_path / filename
            path.write_bytes(textwrap.dedent(source).encode() if isinstance(source, str) else source)
        lab = load_lab("dali-pipelines", registry)
        lab = lab.model_copy(update={"limits": lab.limits.model_copy(update=limits)})
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


@pytest.fixture
def nothing_left(engine):
    """After the test the engine holds no container and no volume of ours."""
    yield
    assert engine.containers.list(all=True, filters={"label": "org.grader.run"}) == []
    assert engine.volumes.list(filters={"label": "org.grader.run"}) == []
