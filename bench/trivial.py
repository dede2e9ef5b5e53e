"""A trivial submission, graded through the whole flow in this process: what the benchmarks of our own cost share."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

from checks.registry import Registry
from grader_service.host.sandboxes import open_runner
from grader_service.ingest.artifact import artifact_at
from grader_service.judging.process import JudgeProcess
from grader_service.labs.catalogue import load_lab
from grader_service.model.submission import Submission
from grader_service.run.progress import Silent
from grader_service.service.local import GradeDeps, grade
from grader_service.settings import Settings
from grader_service.signer.signatures import Signer
from sandbox.api import SandboxRunner
from sandbox.docker.engine import connect_engine
from sandbox.docker.options import STATE_LABEL
from sandbox.warm.pool import WarmPool
from sandbox.warm.runner import WarmRunner

REFLECTIONS = """\
where_dali_wins = [
    "ImageNet training with four CPU cores per GPU: JPEG decoding in the workers starves the card.",
    "Video clips decoded on NVDEC, so that frames never pass through the CPU.",
    "Eight GPUs on one host whose loader workers compete for the same cores.",
]
where_dali_loses = [
    "BERT on pre-tokenised text: there is nothing to decode, so the loader was never the bottleneck.",
    "CIFAR-10, whose tiny images fit into memory and need no decoding at all.",
]
"""
"""Lists that pass the lab's step `reflection`."""
SOURCE = f"import time\npytorch_throughput = time.time()\n{REFLECTIONS}"
"""Its first line tells the time, for these benchmarks only."""
_FULL_S = 120.0


@dataclass(frozen=True)
class Timed:
    """One grading, seconds."""

    wall_s: float
    """Until nothing of it is left."""
    verdict_s: float
    """Until its signed verdict; folders and scratch volumes are still there, and no process."""
    first_line_s: float
    """From the beginning of the grading to the submission's first line; a pod's clock is the host's."""
    learner_s: float

    @property
    def overhead_s(self) -> float:
        """What is not the learner's code; nothing is measured here."""
        return self.wall_s - self.learner_s


class Lane:
    """Grades the trivial submission again and again, as a worker would.

    Args:
        folder: the lane's own, for its state, its key and the submission.
        warm_runs: how many runs are kept prepared; 0 for cold ones.
        pod_broker: socket of the broker that starts pods; the engine itself if None.
    """

    def __init__(self, folder: Path, warm_runs: int, pod_broker: Path | None = None) -> None:
        registry = Registry()
        self._lab = load_lab("dali-pipelines", registry)
        self._judging = JudgeProcess()
        self._engine = connect_engine()
        self._state_dir = folder / "state"
        settings = Settings(state_dir=self._state_dir, pod_broker=pod_broker)
        runner: SandboxRunner = open_runner("docker", self._lab.image, settings, None)
        self.pool = WarmPool(warm_runs) if warm_runs else None
        if self.pool is not None:
            runner = WarmRunner(runner, self.pool)
        signer = Signer.from_folder(folder / "keys")
        self._deps = GradeDeps(self._lab, registry, runner, "cpu", signer, judging=self._judging)
        path = folder / "submission.py"
        path.write_text(SOURCE)
        self._artifact = artifact_at(path)
        self._submission = Submission(
            submission_id="bench:1",
            lab=self._lab.id,
            filename=path.name,
            sha256=self._artifact.sha256,
            size_bytes=self._artifact.size_bytes,
            steps=("reflection",),
        )

    def ready(self) -> None:
        """Blocks until as many runs are prepared as there should be, and their pods have nothing more to do."""
        if self.pool is None:
            return
        if not self.pool.waits(_FULL_S):
            raise SystemExit(f"no run was prepared within {_FULL_S:g} s")
        mine = {"label": f"{STATE_LABEL}={self._state_dir.resolve()}"}
        guests = [psutil.Process(one.attrs["State"]["Pid"]) for one in self._engine.containers.list(filters=mine)]
        used = -1.0
        while used < (now := sum(sum(guest.cpu_times()[:2]) for guest in guests)):
            used = now
            time.sleep(0.5)

    def grade(self) -> Timed:
        """From the artifact to the signed verdict, and until nothing of the run is left."""
        began, since = time.time(), time.monotonic()
        with ExitStack() as afterwards:
            graded = grade(self._submission, self._artifact, self._deps, Silent(), afterwards)
            verdict_s = time.monotonic() - since
        wall_s = time.monotonic() - since
        if graded.verdict.status != "passed" or graded.evidence is None or graded.evidence.discovery is None:
            raise SystemExit(f"the trivial submission got {graded.verdict.status}: {graded.verdict.feedback}")
        told = graded.evidence.discovery.pytorch_throughput.value
        return Timed(wall_s, verdict_s, float(told or 0.0) - began, graded.evidence.discovery.duration_s)

    def close(self) -> None:
        """Ends what waits, and the judging process."""
        if self.pool is not None:
            self.pool.close()
        self._judging.close()
