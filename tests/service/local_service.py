"""Intake, runs and judging in this process, step by step: for faults that need no worker processes."""

import contextlib
from pathlib import Path
from typing import Any

from docker.errors import APIError
from sqlalchemy import select

from checks.registry import Registry
from grader_service.model.verdict import Verdict
from grader_service.retry_policy import RetryPolicy
from grader_service.service.gate import DeviceGate
from grader_service.service.intake import IntakeDeps
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.pipeline import StageEnd
from grader_service.service.runner import RunnerDeps, run_next
from grader_service.signer.signatures import Signer
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.engine import Store
from grader_service.store.tables import EventRow, RunRow
from sandbox.api import SandboxRunner
from sandbox.docker.options import STATE_LABEL
from sandbox.process.runner import ProcessRunner
from tests.factories import OpenGate
from tests.receiving import receive
from tests.service.harness import AT_WORK, QUICK, a_message


class LocalService:
    """One store, and whatever works on it."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.url = f"sqlite:///{state_dir / 'grader.db'}"
        self.store = Store(self.url)
        self.store.migrate()
        self.artifacts = ArtifactStore(f"file://{state_dir / 'artifacts'}")
        self.registry = Registry()
        self.signer = Signer.from_folder(state_dir / "keys")
        self._intake = IntakeDeps(self.store, self.artifacts, self.registry, self.signer)

    def submit(self, source: str = QUICK, **changes: Any) -> str:
        """Takes a submission in; returns its id."""
        message = a_message(source=source, **changes)
        assert receive(self._intake, message, "live", None).kind == "accepted"
        return str(message["submission_id"])

    def deps(self, gate: DeviceGate | None = None, sandbox: SandboxRunner | None = None, **changes: Any) -> RunnerDeps:
        """Dependencies of a runner, without a delay before another try."""
        values = {
            "store": self.store,
            "artifacts": self.artifacts,
            "sandbox": sandbox or ProcessRunner(self.state_dir),
            "device": "cpu",
            "owner": "local",
            "gate": gate or OpenGate(),
            "state_dir": self.state_dir,
            "retry": RetryPolicy(max_attempts=3, delay_s=0.0),
        }
        return RunnerDeps(**values | changes)

    def run_all(self, deps: RunnerDeps) -> list[StageEnd]:
        """Executes runs until none waits."""
        ends = []
        while len(ends) < 9 and (end := run_next(deps)) not in (StageEnd.NOTHING, StageEnd.CLOSED):
            ends.append(end)
        return ends

    def judge(self) -> Verdict | None:
        """Judges what waits."""
        return judge_next(JudgeDeps(self.store, self.registry, self.signer, "local"))

    def run(self, submission_id: str) -> Any:
        """The row of its only run."""
        with self.store.transaction() as connection:
            return connection.execute(select(RunRow.__table__).where(RunRow.submission_id == submission_id)).one()

    def events(self, submission_id: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """Kinds and details of a submission's events, or of those that are of none, in order."""
        statement = select(EventRow.kind, EventRow.detail).where(EventRow.submission_id == submission_id)
        with self.store.transaction() as connection:
            rows = connection.execute(statement.order_by(EventRow.id)).all()
        return [(row.kind, row.detail) for row in rows]


def containers_of(engine: Any, state_dir: Path) -> list[Any]:
    """Containers that belong to a state folder, in any state."""
    mine = {"label": f"{STATE_LABEL}={state_dir.resolve()}"}
    return engine.containers.list(all=True, filters=mine, ignore_removed=True)


def learners_pods(engine: Any, state_dir: Path) -> list[Any]:
    """Those of them in which learner code runs, or will."""
    return [one for one in containers_of(engine, state_dir) if one.name.endswith("-learner")]


def pods_at_work(engine: Any, state_dir: Path) -> list[Any]:
    """Those in which the code of a learner, of `harness.SLOW`, has begun: before that, no failure is counted."""
    found = []
    for one in learners_pods(engine, state_dir):
        with contextlib.suppress(APIError):  # it does not run yet, or no more
            if AT_WORK in str(one.top(ps_args="-eo pid,comm")["Processes"]):
                found.append(one)
    return found


def volumes_of(engine: Any, state_dir: Path) -> list[Any]:
    """Scratch volumes that belong to a state folder."""
    return engine.volumes.list(filters={"label": f"{STATE_LABEL}={state_dir.resolve()}"})


def nothing_left(engine: Any, state_dir: Path) -> bool:
    """Whether neither containers, volumes nor run folders are left."""
    runs = state_dir / "runs"
    return not (containers_of(engine, state_dir) or volumes_of(engine, state_dir) or list(runs.glob("*")))
