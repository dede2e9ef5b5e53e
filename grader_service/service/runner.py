"""The first half of a grading: claims a run, executes it in the sandbox, stores what was found. Loads no check."""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

import structlog

from grader_service.errors import (
    GraderError,
    InfrastructureError,
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
from grader_service.service.lease_heartbeat import LeaseHeartbeat
from grader_service.service.patience import patiently
from grader_service.service.readiness import Host
from grader_service.store import leases, results
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.attempts import attempt_number
from grader_service.store.claims import Claim
from grader_service.store.duplicates import measured_duplicates
from grader_service.store.engine import Store
from grader_service.store.submissions import load_submission
from grader_service.store.tables import PREFLIGHT
from sandbox.abortable import Abortable
from sandbox.api import SandboxRunner
from sandbox.run_folder import OwnedFolder

log = structlog.get_logger(__name__)


class RunEnd(StrEnum):
    """What became of a claim."""

    NOTHING = "nothing"
    STORED = "stored"
    FAILED = "failed"
    """Ours: tried again or dead-lettered."""
    LOST = "lost"
    """Somebody else has the run now."""
    CLOSED = "closed"
    """The device may not be used now, or the host is not fit; nothing was claimed."""
    GIVEN_BACK = "given_back"
    """The host turned out not to be fit, or the database failed, before the learner's code was started; it is as if
    nothing was claimed."""


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
    """Where preflights run beside a GPU, whose prepared runs have pods of another kind; None for the same sandbox."""
    reuse_days: float = 0.0
    """How old a measured run of the same bytes may be whose findings are taken; 0 has every submission run."""
    references: KeptReferences | None = None
    """Rates of our reference from between runs; None to measure it in every run."""
    progress: Callable[[Claim], Progress] = lambda _: Silent()
    host: Host = field(default_factory=Host)


def run_next(deps: RunnerDeps, afterwards: contextlib.ExitStack | None = None) -> RunEnd:
    """Executes the run that should come next.

    Args:
        afterwards: removes what the run leaves on this host, once it is closed; it raises nothing. None to remove it
            before the run is stored, and say it when that fails.

    Raises:
        StoreUnavailable: the database failed, at the claim or for ten minutes; a lease will run out.
        BaseException: a signal to stop; the run was given back before it goes on.
    """
    if not deps.host.fit() or not deps.gate.open():
        return RunEnd.CLOSED
    claim = leases.claim(
        deps.store,
        "run",
        deps.owner,
        deps.lease_s,
        without_labs=deps.without_labs,
        preflights_only=deps.preflights_only,
    )
    if claim is None:
        return RunEnd.NOTHING
    sandbox = Abortable((deps.unprepared if claim.purpose == PREFLIGHT else None) or deps.sandbox)
    renew = partial(leases.renew, deps.store, claim, deps.lease_s)
    with (
        structlog.contextvars.bound_contextvars(submission_id=claim.submission_id, run_id=claim.run_id),
        LeaseHeartbeat(renew, deps.lease_s, sandbox.abort, deps.limit_s, run_id=claim.run_id) as heartbeat,
    ):
        log.info("run_claimed", fence=claim.fence, attempts=claim.attempts)
        try:
            try:
                work = _work(deps, claim, sandbox)
            except StoreUnavailable as error:
                return _give_back(deps, claim, f"the database failed before it was begun: {error}")
            return _run(deps, claim, work, sandbox, afterwards)
        except GraderError as error:
            if heartbeat.lost:
                return RunEnd.LOST
            hung = InfrastructureError(f"the run hung: it was not done within {deps.limit_s:g} s")
            return _fail(deps, claim, hung if heartbeat.overdue and error.retry else error)
        except Exception as error:
            log.exception("run_bug")
            return _fail(deps, claim, InfrastructureError(f"{type(error).__name__}: {error}"))
        except BaseException:
            # Told to stop (a signal becomes SystemExit): pods are gone by now, the work goes back untouched.
            with contextlib.suppress(StoreUnavailable):  # then the lease runs out
                leases.give_back(deps.store, claim, "the worker was told to stop")
            raise


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


@dataclass(frozen=True)
class _Work:
    """What a run needs from the database before any code of the learner's is started."""

    submission: Submission
    plan: RunPlan
    lab: LabSpec
    found: Evidence | None
    """What was measured of the same bytes before, if that shall do."""


def _work(deps: RunnerDeps, claim: Claim, sandbox: Abortable) -> _Work:
    submission = load_submission(deps.store, claim.submission_id)
    # Counted only now: one run of a learner comes at a time, so that all before it have been measured.
    attempt = attempt_number(deps.store, claim.submission_id)
    plan = RunPlan.model_validate({**claim.plan, "attempt": attempt})
    lab = read_lab(kept_text(deps.store, plan.lab), f"lab {submission.lab}")
    sandbox = sandbox.of_image(lab.image)
    found = None
    if deps.reuse_days and claim.item_id is None and claim.purpose != PREFLIGHT:
        duplicates = measured_duplicates(deps.store, claim, days=deps.reuse_days)
        found = evidence_of_duplicate(deps.store, duplicates, lab, sandbox.facts, deps.device, deps.gpu)
    return _Work(submission, plan, lab, found)


def _run(
    deps: RunnerDeps, claim: Claim, work: _Work, sandbox: Abortable, afterwards: contextlib.ExitStack | None
) -> RunEnd:
    submission, plan, lab = work.submission, work.plan, work.lab
    preflight = claim.purpose == PREFLIGHT
    device: Device = "cpu" if preflight else deps.device
    if work.found is not None:
        # No attempt of the learner: nothing was measured, so noise got no new chance.
        document = as_own(work.found, claim.run_id).model_dump_json().encode()
        log.info("run_deduplicated", reused_from=work.found.run.run_id)
        return _store(deps, claim, "evidence", document, {})
    with _fetching(deps, claim) as folder:
        path = folder / "artifact"
        with beginning():
            deps.artifacts.copy_to(submission.sha256, path)
            probes = tuple(_probe_task(deps, ref, folder) for ref in plan.probes)
        artifact = Artifact(submission.filename, path, submission.sha256, submission.size_bytes)
        try:
            outcome = execute(
                artifact,
                lab,
                plan,
                sandbox,
                device,
                deps.progress(claim),
                run_id=claim.run_id,
                measure=try_graph if preflight else partial(measure, references=deps.references),
                gpu=None if preflight else deps.gpu,
                probes=probes,
                submitter=submission.learner or submission.submission_id,
                afterwards=afterwards,
                preflight=preflight,
            )
        except NotBegun:
            raise
        except SubmissionRejected as error:
            name, isolated = sandbox.facts.name, sandbox.facts.isolated
            found = Rejection.of(error, run_id=claim.run_id, device=device, sandbox=name, isolated=isolated)
            return _store(deps, claim, "rejection", found.model_dump_json().encode(), {})
        except Exception:
            deps.gate.examine()  # a run that broke off because it broke the GPU must not break the next one
            raise
        if sandbox.aborted:
            deps.gate.examine()
            raise SandboxUnavailable("the run was aborted")
        evidence = _with_health(outcome.evidence, deps.gate.release())
        kind: results.EvidenceKind = "measured" if _tested(evidence) else "evidence"
        return _store(deps, claim, kind, evidence.model_dump_json().encode(), outcome.blobs)


@contextlib.contextmanager
def _fetching(deps: RunnerDeps, claim: Claim) -> Iterator[Path]:
    """A folder for what is fetched, on the disk of the runs: /tmp may be small. After a kill a sweep removes it."""
    folder = OwnedFolder(deps.state_dir, f"{claim.run_id}-fetched-{secrets.token_hex(4)}")
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


def _store(
    deps: RunnerDeps, claim: Claim, kind: results.EvidenceKind, document: bytes, blobs: Mapping[str, bytes]
) -> RunEnd:
    if not patiently(lambda: results.store_evidence(deps.store, claim, kind, document, blobs)):
        log.warning("run_fenced_off", fence=claim.fence)
        return RunEnd.LOST
    log.info("run_stored", fence=claim.fence)
    return RunEnd.STORED


def _tested(evidence: Evidence) -> bool:
    """Whether the ratio was put to the test, which makes the run an attempt; contamination by the host does not."""
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


def _fail(deps: RunnerDeps, claim: Claim, error: GraderError) -> RunEnd:
    """Counts an infrastructure failure, except on a host that can begin no run: none burns its tries there."""
    if isinstance(error, NotBegun) and (misfit := deps.host.misfit()) is not None:
        log.error("host_not_fit", error=str(error)[:500], found=misfit[:500])
        return _give_back(deps, claim, f"its host is not fit: {misfit[:500]}")
    state = leases.fail(deps.store, claim, f"{type(error).__name__}: {error}", deps.retry, retryable=error.retry)
    log.error("run_failed", error=str(error)[:500], state=state)
    return RunEnd.FAILED if state is not None else RunEnd.LOST


def _give_back(deps: RunnerDeps, claim: Claim, why: str) -> RunEnd:
    """Uncounted: no code of the learner's was started."""
    log.warning("run_given_back", why=why[:500])
    kept = patiently(lambda: leases.give_back(deps.store, claim, why))
    return RunEnd.GIVEN_BACK if kept else RunEnd.LOST
