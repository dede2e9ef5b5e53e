"""The service in this process, with runs whose measurement is thrown like dice: for attacks on its statistics."""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

from structlog.testing import capture_logs

from grader_service.measure.sequential_test import decide
from grader_service.model.evidence import RunPlan
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Measurement
from grader_service.model.verdict import Verdict
from grader_service.retry_policy import RetryPolicy
from grader_service.run.execution import RunOutcome
from grader_service.service import runner
from grader_service.service.intake import IntakeDeps, Taken
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.pipeline import StageEnd
from grader_service.service.runner import RunnerDeps, run_next
from tests.corpus.world import World
from tests.factories import OpenGate, a_block, a_measurement, a_run, an_evidence, message
from tests.receiving import receive

THRESHOLD = 1.1
_PLAN = MeasurementPlan()
_NOISE = 0.08
"""SD of `ln(ratio)` per block."""
Measured = Callable[[int], Measurement]
"""The measurement of a run, given the number of the attempt that it is told."""


@dataclass
class Dice:
    """A graph whose true ratio is the threshold itself, on a noisy host: it never deserves to pass."""

    seed: int
    gives_up: bool = False
    """Ends itself after two blocks that do not look like a pass."""
    attempts: list[int] = field(default_factory=list)
    """Numbers of attempts that runs were told."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def __call__(self, attempt: int) -> Measurement:
        """Throws blocks until the test answers, or until it gives up."""
        self.attempts.append(attempt)
        logs: list[float] = []
        decision = None
        while decision is None:
            logs.append(math.log(THRESHOLD) + self._random.gauss(0, _NOISE))
            if self.gives_up and len(logs) == 2 and min(logs) < math.log(THRESHOLD) + _NOISE / 2:
                break
            decision = decide(logs, _PLAN, THRESHOLD, attempt=attempt)
        problem = None if decision else "it ended its own process"
        return measured([math.exp(value) for value in logs], attempt, decision=decision, problem=problem)


def measured(ratios: list[float], attempt: int = 1, **changes: object) -> Measurement:
    """A measurement of these blocks."""
    blocks = tuple(a_block(index, ratio) for index, ratio in enumerate(ratios))
    return a_measurement((2.0, 2.0), blocks=blocks, attempt=attempt, **changes)


@dataclass
class Service:
    """Intake, a runner and a judge over one fresh store."""

    world: World
    intake: IntakeDeps

    def submit(self, submission_id: str, source: str = "x = 1", *, step: str = "benchmark") -> Taken:
        """One learner hands something in."""
        return receive(self.intake, message(submission_id, source, learner="ann", steps=[step]), "live", None)

    def run(self) -> StageEnd:
        """Executes the run that comes next, in this world's sandbox."""
        deps = RunnerDeps(
            store=self.intake.store,
            artifacts=self.intake.artifacts,
            sandbox=self.world.runner,
            device="cpu",
            owner="one",
            gate=OpenGate(),
            state_dir=self.world.state_dir,
            retry=RetryPolicy(max_attempts=3, delay_s=0.0),
        )
        return run_next(deps)

    def judge(self) -> Verdict | None:
        """Judges the run that comes next."""
        return judge_next(JudgeDeps(self.intake.store, self.intake.registry, self.intake.signer, "judge"))

    def graded(self) -> list[Verdict]:
        """Runs and judges until nothing waits."""
        verdicts = []
        while self.run() is not StageEnd.NOTHING:
            if (verdict := self.judge()) is not None:
                verdicts.append(verdict)
        return verdicts


@contextmanager
def service(world: World, found: Measured | None = None) -> Iterator[Service]:
    """A service over a fresh store; `found` stands for what its runs measure, else they are real."""

    def execute(_artifact: object, _lab: object, plan: RunPlan, *_: object, run_id: str, **__: object) -> RunOutcome:
        assert found is not None
        return RunOutcome(an_evidence(run=a_run(run_id=run_id), measurement=found(plan.attempt)), {})

    patched = mock.patch.object(runner, "execute", execute if found is not None else runner.execute)
    with world.deps() as deps, patched, capture_logs():
        yield Service(world, deps)
