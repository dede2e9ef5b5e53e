"""The first half of a grading: claims a run, executes it in the sandbox, stores what was found. Loads no check."""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import structlog

from grader_service.errors import (
    NotBegun,
    SandboxUnavailable,
    StoreUnavailable,
    SubmissionRejected,
)
from grader_service.host.facts import Gpu
from grader_service.host.gpu.steward import Health
from grader_service.ingest.artifact import Artifact
from grader_service.labs.specs import read_lab
from grader_service.measure.kept_references import KeptReferences
from grader_service.measure.measuring import measure, try_graph
from grader_service.model.base import Device
from grader_service.model.evidence import Evidence, ProbeRef, ProbeTask, Rejection, RunPlan
from grader_service.model.lab import LabSpec
from grader_service.model.submission import Submission
from grader_service.retry_policy import RUNS, RetryPolicy
from grader_service.run.execution import beginning, execute
from grader_service.run.progress import Progress, Silent
from grader_service.service.deduplication import as_own, evidence_of_duplicate
from grader_service.service.gate import DeviceGate
from grader_service.service.lab_texts import kept_text
from grader_service.service.pipeline import NotNow, StageEnd, advance
from grader_service.service.readiness import Host
from grader_service.store import results
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.attempts import attempt_number
from grader_service.store.duplicates import measured_duplicates
from grader_service.store.engine import Store
from grader_service.store.lease import Lease
from grader_service.store.submissions import load_submission
from grader_service.store.tables import PREFLIGHT
from sandbox.abortable import Abortable
from sandbox.api import SandboxRunner
from sandbox.run_folder import OwnedFolder

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class RunnerDeps:
    """Dependencies of a runner: a sandbox and one device, no check code."""

    store: Store
    artifacts: ArtifactStore
    sandbox: SandboxRunner
    device: Device
    owner: str
    gate: DeviceGate
    state_dir: Path
    """Where it keeps what its runs need on this host."""
    gpu: Gpu | None = None
    lease_s: float = 60.0
    limit_s: float = 7200.0
    """A run that takes this long hangs."""
    retry: RetryPolicy = RUNS
    without_labs: tuple[str, ...] = ()
    """Labs whose runs this device is not fit for."""
    preflights_only: bool = False
    """Whether all other runs are left to others."""
    unprepared: SandboxRunner | None = None
    """Sandbox for preflights beside a GPU: the pods prepared in `sandbox` are for measured runs. None: the same."""
    reuse_days: float = 0.0
    """Greatest age of a measured run of the same bytes that is reused; 0: every submission runs."""
    references: KeptReferences | None = None
    """Rates of our reference that were measured between runs; None to measure it in every run."""
    progress: Callable[[Lease], Progress] = lambda _: Silent()
    host: Host = field(default_factory=Host)


def run_next(deps: RunnerDeps, afterwards: contextlib.ExitStack | None = None) -> StageEnd:
    """Executes the run that should come next.

    Args:
        afterwards: takes over the removal of folders and scratch volumes; close it after this returns, see `removal`.
            None: they are removed before the run is stored, and where that fails the run fails.

    Returns:
        `CLOSED` where host or device may take no run, and nothing was claimed; else as `pipeline.advance`.

    Raises:
        StoreUnavailable, BaseException: see `pipeline.advance`.
    """
    if not deps.host.fit() or not deps.gate.open():
        return StageEnd.CLOSED
    return advance(
        "run",
        deps,
        lambda lease: _Run(deps, lease, afterwards),
        limit_s=deps.limit_s,
        without_labs=deps.without_labs,
        preflights_only=deps.preflights_only,
    )


@contextlib.contextmanager
def removal() -> Iterator[contextlib.ExitStack]:
    """An `afterwards` for `run_next`: closed in the end, and what cannot be removed then is left to a sweep."""
    afterwards = contextlib.ExitStack()
    try:
        yield afterwards
    finally:
        try:
            afterwards.close()
        except SandboxUnavailable as error:  # its run is stored
            log.warning("run_not_removed", error=str(error)[:500])


class _Run:
    """One run, as `pipeline.Work`."""

    def __init__(self, deps: RunnerDeps, lease: Lease, afterwards: contextlib.ExitStack | None) -> None:
        self._deps = deps
        self._lease = lease
        self._afterwards = afterwards
        self._preflight = lease.purpose == PREFLIGHT
        self._sandbox = Abortable((deps.unprepared if self._preflight else None) or deps.sandbox)

    def abort(self) -> None:
        """Ends its pods."""
        self._sandbox.abort()

    def do(self) -> Callable[[], bool]:
        """See `pipeline.Work.do`."""
        try:
            prepared = self._prepare()
        except StoreUnavailable as error:
            raise NotNow(f"the database failed before it was begun: {error}") from error
        if isinstance(prepared, Evidence):
            # No attempt of the learner: nothing was measured, so noise got no second try.
            log.info("run_deduplicated", reused_from=prepared.run.run_id)
            return self._storing("evidence", as_own(prepared, self._lease.run_id))
        try:
            return self._execute(*prepared)
        except NotBegun as error:
            # A host that can begin no run costs none of them a try.
            if (misfit := self._deps.host.misfit()) is None:
                raise
            log.warning("host_not_fit", error=str(error)[:500], found=misfit[:500])
            raise NotNow(f"its host is not fit: {misfit[:500]}") from error

    def _prepare(self) -> Evidence | tuple[Submission, RunPlan, LabSpec]:
        """Loads plan and lab of the run; or the evidence of an earlier run of the same bytes, where it is reused."""
        deps, lease = self._deps, self._lease
        submission = load_submission(deps.store, lease.submission_id)
        # Counted only now: a learner's runs come one by one, so all earlier ones have been measured.
        attempt = attempt_number(deps.store, lease.submission_id)
        plan = RunPlan.model_validate({**lease.plan, "attempt": attempt})
        lab = read_lab(kept_text(deps.store, plan.lab), f"lab {submission.lab}")
        self._sandbox = self._sandbox.of_image(lab.image)
        if deps.reuse_days and lease.item_id is None and not self._preflight:
            duplicates = measured_duplicates(deps.store, lease, days=deps.reuse_days)
            found = evidence_of_duplicate(deps.store, duplicates, lab, self._sandbox.facts, deps.device, deps.gpu)
            if found is not None:
                return found
        return submission, plan, lab

    def _execute(self, submission: Submission, plan: RunPlan, lab: LabSpec) -> Callable[[], bool]:
        deps, sandbox, preflight = self._deps, self._sandbox, self._preflight
        device: Device = "cpu" if preflight else deps.device
        with _fetching(deps, self._lease) as folder:
            path = folder / "artifact"
            with beginning():
                deps.artifacts.copy_to(submission.sha256, path)
                probes = tuple(_probe_task(deps, ref, folder) for ref in plan.probes)
            try:
                outcome = execute(
                    Artifact(submission.filename, path, submission.sha256, submission.size_bytes),
                    lab,
                    plan,
                    sandbox,
                    device,
                    deps.progress(self._lease),
                    run_id=self._lease.run_id,
                    measure=try_graph if preflight else partial(measure, references=deps.references),
                    gpu=None if preflight else deps.gpu,
                    probes=probes,
                    submitter=submission.learner or submission.submission_id,
                    afterwards=self._afterwards,
                    preflight=preflight,
                )
            except NotBegun:
                raise
            except SubmissionRejected as error:
                name, isolated = sandbox.facts.name, sandbox.facts.isolated
                run_id = self._lease.run_id
                found = Rejection.of(error, run_id=run_id, device=device, sandbox=name, isolated=isolated)
                return self._storing("rejection", found)
            except Exception:
                deps.gate.examine()  # a run that broke off because it broke the GPU must not break the next one
                raise
        if sandbox.aborted:
            deps.gate.examine()
            raise SandboxUnavailable("the run was aborted")
        evidence = _with_health(outcome.evidence, deps.gate.release())
        return self._storing("measured" if _tested(evidence) else "evidence", evidence, outcome.blobs)

    def _storing(
        self, kind: results.EvidenceKind, document: Evidence | Rejection, blobs: Mapping[str, bytes] | None = None
    ) -> Callable[[], bool]:
        data = document.model_dump_json().encode()
        return lambda: results.store_evidence(self._deps.store, self._lease, kind, data, blobs or {})


@contextlib.contextmanager
def _fetching(deps: RunnerDeps, lease: Lease) -> Iterator[Path]:
    """A folder for what is fetched, on the disk of the runs: /tmp may be small. After a kill a sweep removes it."""
    folder = OwnedFolder(deps.state_dir, f"{lease.run_id}-fetched-{secrets.token_hex(4)}")
    try:
        folder.create()
    except OSError as error:
        raise NotBegun(f"no artifact can be kept in {deps.state_dir}: {error}") from error
    try:
        yield folder.root
    finally:
        folder.remove()


def _probe_task(deps: RunnerDeps, ref: ProbeRef, folder: Path) -> ProbeTask:
    """A probe with its source, as it was when the run was queued; copied, never imported."""
    path = folder / ref.sha256
    deps.artifacts.copy_to(ref.sha256, path)
    return ProbeTask(ref, path.read_bytes())


def _tested(evidence: Evidence) -> bool:
    """Whether the run counts as an attempt: the test decided, or a steady run has a block that was not contaminated."""
    measurement = evidence.measurement
    if measurement is None:
        return False
    # A graph that stops half-way is judged by the blocks there are: stopping must not be a way to a free attempt.
    seen = any(block.spoiled is None for block in (*measurement.screened, *measurement.blocks))
    return measurement.decision is not None or (measurement.unsteady is None and seen)


def _with_health(evidence: Evidence, health: Health | None) -> Evidence:
    if health is None or evidence.run.gpu is None:
        return evidence
    gpu = {**evidence.run.gpu, "health": asdict(health)}
    return evidence.model_copy(update={"run": evidence.run.model_copy(update={"gpu": gpu})})
