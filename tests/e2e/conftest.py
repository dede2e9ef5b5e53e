"""Grades whole submissions through the flow, with limits that a test can wait for."""

import textwrap
from pathlib import Path

import pytest

from checks.registry import Registry
from grader_service.ingest.artifact import artifact_at
from grader_service.labs.catalogue import load_lab
from grader_service.model.submission import Submission
from grader_service.run.progress import Silent
from grader_service.service.local import GradeDeps, grade
from grader_service.signer.signatures import Signer
from tests.corpus.world import PLAN as SHORT
from tests.corpus.world import with_threshold
from tests.levels.parts import ROOT
from tests.service.local_service import containers_of, volumes_of

EXAMPLES = ROOT / "examples"
PLAN = SHORT | {"block_s": 0.2}
"""A window holds more than a ring of four batches, which would else be new in each."""


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
        artifact = artifact_at(path)
        submission = Submission(
            submission_id="test:1",
            lab=lab.id,
            filename=path.name,
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
            steps=tuple(steps),
        )
        return grade(submission, artifact, GradeDeps(lab, registry, runner, "cpu", signer), Silent())

    return run


def checks_of(graded):
    """The checks of a verdict by their ids."""
    assert graded.failure is None, graded.failure
    return {check.id: check for check in graded.verdict.checks}


def check_of(graded, check_id):
    """One check of a verdict."""
    return checks_of(graded)[check_id]


ENDINGS = (
    pytest.param("import os\nos._exit(0)\n", "run.crashed", id="os._exit"),
    pytest.param(
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n",
        "run.timed_out",
        id="deaf loop",
    ),
    pytest.param("x = []\nwhile True: x.append(bytearray(1 << 24))\n", "run.out_of_memory", id="memory"),
)
"""Code that ends its pod without a word, and the code of the verdict."""


def judged_ending(grade_with, runner, code, expected):
    """The verdict on such code, whose check was not reached."""
    # Filling the memory ends it; how long that takes is the machine's affair.
    limit_s = 60.0 if expected == "run.out_of_memory" else 2.0
    graded = grade_with(runner, code, ["baseline"], learner_timeout_s=limit_s, memory_mib=512)
    assert (check_of(graded, "jpeg_dataset").code, graded.verdict.score) == ("run.not_reached", 0.0)
    return graded.verdict


@pytest.fixture
def nothing_left(engine, state_dir):
    """After the test the engine holds no container and no volume of the grader with this state folder."""
    yield
    assert containers_of(engine, state_dir) + volumes_of(engine, state_dir) == []


@pytest.fixture
def graded(grade_with, forked_runner):
    """`graded(source)` → (checks by id, evidence), with short windows and a threshold that every host can reach."""

    def run(*parts, threshold=0.02):
        source = "\n".join(textwrap.dedent(part) for part in parts)
        done = grade_with(forked_runner, source, ("pipeline", "benchmark"), measurement=PLAN, threshold=threshold)
        return checks_of(done), done.evidence

    return run
