"""What a case is played in: a sandbox, a warm judging process, and folders of its own."""

import os
import shutil
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from checks.registry import Registry
from grader_service.host.facts import find_gpus
from grader_service.host.sandboxes import open_runner
from grader_service.ingest.artifact import Artifact, artifact_at
from grader_service.judging.process import JudgeProcess
from grader_service.labs.catalogue import load_lab
from grader_service.model.base import Device
from grader_service.model.lab import LabSpec
from grader_service.model.submission import Submission
from grader_service.model.verdict import Verdict
from grader_service.run import learner
from grader_service.run.progress import Silent
from grader_service.service.intake import IntakeDeps
from grader_service.service.local import Graded, GradeDeps, grade
from grader_service.settings import Settings
from grader_service.signer.signatures import Signer
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.engine import Store
from sandbox.api import SandboxRunner
from sandbox.docker.options import LABEL, STATE_LABEL
from sandbox.docker.runner import connect_engine
from tests.corpus.case import SUBMISSION, Cheat, Content, Honest, Observed
from tests.services.forked_runner import ForkedRunner

LAB = "dali-pipelines"
PLAN: Mapping[str, object] = {"block_s": 0.1, "looks": (3,), "extension_blocks": 0, "alpha_pass": 0.4}
"""Short and easily satisfied: what is tested is what was counted, not how fast this machine is."""


class World:
    """One lane of the corpus; used by one process at a time, for one case after the other."""

    def __init__(self, folder: Path, *, sandbox: str = "docker", device: Device = "cpu", gpu: int = 0) -> None:
        """Opens the sandbox; `folder` is this lane's own. With `cuda` gradings are official, on the GPU of that index.

        `sandbox` is `docker`, `process`, or `forked`: the process sandbox with pods that need not import torch.
        """
        self.folder = folder
        self.state_dir = folder / "state"
        self.registry = Registry()
        self.signer = Signer.from_folder(folder / "keys")
        self.engine = connect_engine(30.0) if sandbox == "docker" else None
        self.device: Device = device
        self.gpu = find_gpus()[gpu] if device == "cuda" else None
        image = os.environ.get("GRADER_LAB_IMAGE") or load_lab(LAB, self.registry).image
        settings = Settings(state_dir=self.state_dir)
        self.runner: SandboxRunner = (
            ForkedRunner(self.state_dir) if sandbox == "forked" else open_runner(sandbox, image, settings, self.gpu)
        )
        self.judging = JudgeProcess()
        self._stores = 0

    def close(self) -> None:
        """Takes away what a case left behind, and ends the judging process."""
        self.runner.sweep()
        self.judging.close()

    def lab(
        self,
        *,
        limits: Mapping[str, object] | None = None,
        plan: Mapping[str, object] | None = None,
        threshold: float | None = None,
    ) -> LabSpec:
        """The lab with the corpus' short plan, and what a case changes."""
        lab = load_lab(LAB, self.registry)
        lab = lab.model_copy(update={"limits": lab.limits.model_copy(update=dict(limits or {}))})
        lab = lab.model_copy(update={"measurement": lab.measurement.model_copy(update={**PLAN, **(plan or {})})})
        return lab if threshold is None else with_threshold(lab, threshold)

    def grade(
        self,
        content: Content,
        *,
        filename: str = "submission.py",
        steps: tuple[str, ...] = (),
        lab: LabSpec | None = None,
    ) -> Graded:
        """Grades what somebody hands in."""
        path = self.hand_in(filename, as_bytes(content))
        return self.grade_artifact(artifact_at(path), filename=filename, steps=steps, lab=lab)

    def hand_in(self, filename: str, data: bytes) -> Path:
        """Puts a file where submissions lie."""
        path = self.folder / "handed-in" / filename
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path

    def grade_artifact(
        self,
        artifact: Artifact,
        *,
        filename: str,
        steps: tuple[str, ...] = (),
        lab: LabSpec | None = None,
    ) -> Graded:
        """Grades a file that was measured already."""
        lab = lab or self.lab()
        submission = Submission(
            submission_id="corpus:1",
            lab=lab.id,
            filename=filename[:200],
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
            steps=steps,
        )
        deps = GradeDeps(lab, self.registry, self.runner, self.device, self.signer, self.gpu, judging=self.judging)
        return grade(submission, artifact, deps, Silent())

    def graded(self, case: Cheat | Honest) -> Graded:
        """Grades a case."""
        lab = self.lab(limits=case.limits, plan=case.plan, threshold=case.threshold)
        return self.grade(case.content, filename=case.filename, steps=case.steps, lab=lab)

    def observe(self, case: Cheat) -> Observed:
        """Grades a cheat and looks at its target."""
        return seen(self.graded(case), case.target)

    @contextmanager
    def deps(self) -> Iterator[IntakeDeps]:
        """The service's door over a fresh embedded database."""
        self._stores += 1
        settings = Settings(state_dir=self.folder / f"service-{self._stores}")
        settings.state_dir.mkdir()
        store = Store(f"sqlite:///{settings.state_dir / 'grader.db'}")
        store.migrate()
        artifacts = ArtifactStore(f"file://{settings.state_dir / 'artifacts'}", ())
        try:
            yield IntakeDeps(store, artifacts, self.registry, self.signer)
        finally:
            store.close()

    def leftovers(self) -> list[str]:
        """What a case left behind: containers and volumes of this lane, folders of runs."""
        runs = self.state_dir / "runs"
        left = [f"folder {path.name}" for path in runs.iterdir()] if runs.is_dir() else []
        if self.engine is not None:
            mine = {"label": [LABEL, f"{STATE_LABEL}={self.state_dir}"]}
            left += [f"container {one.name}" for one in self.engine.containers.list(all=True, filters=mine)]
            left += [f"volume {one.name}" for one in self.engine.volumes.list(filters=mine)]
        return left


@contextmanager
def collected_soon(_: World) -> Iterator[Mapping[str, str]]:
    """Beside a learner's time the host waits two seconds for the soft stop, and two for what the code left behind."""
    with patch.object(learner, "STOP_S", 2.0), patch.object(learner, "COLLECT_S", 2.0):
        yield {}


def as_bytes(content: Content) -> bytes:
    """The file itself."""
    if callable(content):
        return content()
    return textwrap.dedent(content).encode() if isinstance(content, str) else content


def seen(done: Graded, target: str) -> Observed:
    """What a verdict says of one check, or of the submission as a whole."""
    verdict: Verdict = done.verdict
    others = {check.id: check.code for check in verdict.checks if check.id != target}
    if done.failure is not None:
        return Observed("error", verdict.code, str(done.failure), others)
    if target == SUBMISSION:
        return Observed(verdict.status.value, verdict.code, verdict.feedback, others)
    for check in verdict.checks:
        if check.id == target:
            return Observed(check.outcome.value, check.code, check.feedback, others)
    return Observed(verdict.status.value, verdict.code, f"no check {target}: {verdict.feedback}", others)


def with_threshold(lab: LabSpec, threshold: float) -> LabSpec:
    """The lab with another ratio to exceed."""
    document = lab.model_dump()
    for check in (check for step in document["steps"] for check in step["checks"]):
        if check["id"] == "throughput_ratio":
            check["params"] = {**check["params"], "threshold": threshold}
    return LabSpec.model_validate(document)


@contextmanager
def opened_world(sandbox: str) -> Iterator[World]:
    """A world of this process, of which nothing is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="grader-corpus-", dir="/var/tmp"))
    world = World(folder, sandbox=sandbox)
    try:
        yield world
    finally:
        world.close()
        shutil.rmtree(folder, ignore_errors=True)
