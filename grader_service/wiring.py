"""Builds the service's parts from the settings; the only place that does."""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.engine import make_url

from grader_service.errors import ConfigurationError, GraderError
from grader_service.host.device_lock import Hold, hold_device
from grader_service.host.facts import Gpu, driver_gpus, find_gpus
from grader_service.labs.specs import grader_lab, lab_ids, lab_text, read_lab
from grader_service.model.lab import LabSpec
from grader_service.retry_policy import RUNS, RetryPolicy
from grader_service.settings import Settings, secret
from grader_service.signer.chosen import signer_of
from grader_service.store.admission import IntakeLimits
from grader_service.store.engine import SCHEMA, Store

if TYPE_CHECKING:
    from redis import Redis

    from grader_service.backup.journal import Journal
    from grader_service.backup.place import Place
    from grader_service.host.gpu.monitor import GpuMonitor
    from grader_service.model.base import Device
    from grader_service.service.canary import Canary
    from grader_service.service.gate import DeviceGate
    from grader_service.service.retaining import Keeping
    from grader_service.service.run_spaces import HostFitness
    from grader_service.service.runner import RunnerDeps
    from grader_service.store.artifacts import ArtifactStore
    from sandbox.api import SandboxRunner
    from sandbox.broker.server import PodBroker


def open_store(settings: Settings) -> Store:
    """The database that the settings name; SQLite in the state folder when they name none."""
    if settings.database_url is None:
        return Store(f"sqlite:///{settings.state_dir / 'grader.db'}")
    return _opened(settings.database_url, secret(settings.database_password_file))


def _opened(named: str, password: str | None) -> Store:
    url = make_url(named)
    if password is not None:
        url = url.set(password=password)
    return Store(url.render_as_string(hide_password=False), pool_size=10)


def migrate(settings: Settings) -> list[str]:
    """Brings the database's schema to this version, and gives the services' roles their rights in it.

    Returns:
        Names of the roles that have rights now.

    Raises:
        ConfigurationError: the schema is too new for this version, or the settings are not those of the tables' owner.
        StoreUnavailable: the database failed.
    """
    from grader_service.store import rights, roles  # noqa: PLC0415 - few commands migrate

    store = open_store(settings)
    store.migrate()
    if store.schema() != SCHEMA:
        return []  # a newer version's, which knows better what its services need
    return roles.apply(store.engine, settings.role_passwords(rights.RIGHTS))


def ready_store(settings: Settings) -> Store:
    """The database, with a schema that fits this version; the embedded one is brought there, others by an operator.

    Raises:
        ConfigurationError: the schema is another version's.
        StoreUnavailable: the database does not answer.
    """
    return _fitting(open_store(settings))


def operator_store(settings: Settings) -> Store:
    """The same, in the role in which operators act.

    Raises:
        ConfigurationError: the schema is another version's.
        StoreUnavailable: the database does not answer.
    """
    if settings.operator_database_url is None:
        return ready_store(settings)
    return _fitting(_opened(settings.operator_database_url, secret(settings.operator_database_password_file)))


def _fitting(store: Store) -> Store:
    if store.is_sqlite and (store.schema() or "") < SCHEMA:
        store.migrate()
    store.check_schema()
    return store


def existing_store(settings: Settings) -> Store:
    """The same for a command that also has something to do without a database, and makes none.

    Raises:
        ConfigurationError: there is no database, or its schema is another version's.
        StoreUnavailable: the database does not answer.
    """
    url = make_url(settings.database_url or f"sqlite:///{settings.state_dir / 'grader.db'}")
    if url.get_backend_name() == "sqlite" and not (url.database and Path(url.database).exists()):
        raise ConfigurationError(f"no submission was accepted here: {url.database} is not there")
    return ready_store(settings)


def open_artifacts(settings: Settings) -> "ArtifactStore":
    """The artifacts' store."""
    from grader_service.store.artifacts import ArtifactStore  # noqa: PLC0415 - planning needs no object store

    url = settings.artifact_store or f"file://{(settings.state_dir / 'artifacts').resolve()}"
    return ArtifactStore(url, tuple(settings.artifact_sources.split()))


def backup_place(settings: Settings) -> "Place":
    """Where backups lie.

    Raises:
        ConfigurationError: no setting says where.
    """
    from grader_service.backup.place import Place  # noqa: PLC0415 - as above

    if settings.backup_store is None:
        raise ConfigurationError(
            "GRADER_BACKUP_STORE is not set; expected where backups lie, such as file:///srv/grader-backups or "
            "s3://bucket/grader: better not on the disk of the database"
        )
    return Place(settings.backup_store)


def open_journal(settings: Settings, store: Store) -> "Journal | None":
    """Where answers are kept before they are sent, if anywhere."""
    from grader_service.backup.journal import Journal  # noqa: PLC0415 - as above

    if settings.backup_store is None:
        return None
    return Journal(backup_place(settings), store, signer_of(settings))


def open_redis(settings: Settings) -> "Redis":
    """A client of the broker with bounded waits."""
    return redis_client(settings.broker_address())


def open_results(settings: Settings) -> "Redis":
    """A client of the answers' Redis with bounded waits."""
    return redis_client(settings.results_address())


def redis_client(url: str) -> "Redis":
    """A client of one server, which connects when it is asked something."""
    from redis import Redis  # noqa: PLC0415 - commands that only ask the database should not wait for it

    return Redis.from_url(
        url, socket_timeout=10, socket_connect_timeout=10, socket_keepalive=True, health_check_interval=10
    )


def intake_limits(settings: Settings) -> IntakeLimits:
    """What intake takes."""
    return IntakeLimits(
        max_queued=settings.max_queued,
        learner_per_hour=settings.learner_per_hour,
        learner_gpu_s=settings.learner_gpu_hours * 3600.0,
        learner_needed=settings.production,
    )


def keeping(settings: Settings) -> "Keeping":
    """How long what is kept; of artifacts the collector knows."""
    from grader_service.service.retaining import Keeping  # noqa: PLC0415 - commands that only ask remove nothing

    return Keeping(
        evidence_days=settings.keep_evidence_days,
        event_days=settings.keep_event_days,
        answer_days=settings.keep_answer_days,
        verdict_days=settings.keep_verdict_days,
    )


def retry_policy(of: RetryPolicy, settings: Settings) -> RetryPolicy:
    """A policy of `grader_service.retry_policy` with the numbers of the settings."""
    return replace(of, max_attempts=settings.max_attempts, delay_s=settings.retry_delay_s)


def chosen_gpu(settings: Settings) -> Gpu | None:
    """The one device of this worker, a GPU or a MIG instance; None for rehearsals.

    Raises:
        ConfigurationError: the device is not there, several are and none was named, or it cannot be graded on.
    """
    if settings.gpu == "none":
        return None
    chosen = _named_gpu(settings, find_gpus())
    if chosen is not None and chosen.mig is not None and not chosen.mig.alone:
        raise ConfigurationError(
            f"{chosen.uuid} ({chosen.model}) shares memory and faults with another compute instance of its GPU "
            "instance; make one compute instance for each GPU instance (nvidia-smi mig -cgi PROFILE -C)"
        )
    return chosen


def _named_gpu(settings: Settings, gpus: Sequence[Gpu]) -> Gpu | None:
    if settings.gpu == "auto":
        if len(gpus) > 1:
            names = ", ".join(gpu.uuid for gpu in gpus)
            raise ConfigurationError(
                f"this host has {len(gpus)} GPUs; start one worker for each with GRADER_GPU={names}"
            )
        if not gpus and (there := driver_gpus()):
            raise ConfigurationError(
                f"this host has {there} GPU(s) of which none can be used: partitioned without an instance, or not "
                "answering (nvidia-smi -L); GRADER_GPU=none rehearses"
            )
        return gpus[0] if gpus else None
    for gpu in gpus:
        if gpu.uuid == settings.gpu:
            return gpu
    instances = ", ".join(gpu.uuid for gpu in gpus if gpu.mig is not None and gpu.mig.parent == settings.gpu)
    if instances:
        raise ConfigurationError(f"GRADER_GPU={settings.gpu} is in MIG mode; name one of its instances: {instances}")
    found = ", ".join(gpu.uuid for gpu in gpus) or "none"
    raise ConfigurationError(f"GRADER_GPU={settings.gpu} is not on this host; GPUs here: {found}")


def open_sandbox(settings: Settings, gpu: Gpu | None) -> "SandboxRunner":
    """The runner of pods; each run asks it for the image of its own lab.

    Raises:
        ConfigurationError: a sandbox without isolation in production.
    """
    if settings.sandbox == "process" and settings.production:
        raise ConfigurationError("GRADER_SANDBOX=process has no isolation and is refused with GRADER_PRODUCTION=true")
    # Imported here: commands that only ask the database should not wait for Docker and NumPy.
    from grader_service.host.sandboxes import open_runner  # noqa: PLC0415

    return open_runner(settings.sandbox, grader_lab().image, settings, gpu)


def open_pod_broker(settings: Settings) -> "PodBroker":
    """What starts pods for a runner that has no engine; of the images and limits of the installed labs.

    Raises:
        ConfigurationError: the device is not there, or a setting does not fit.
        SandboxUnavailable: the engine, an image or the GPU cannot be had.
    """
    from grader_service.host.sandboxes import open_broker  # noqa: PLC0415 - see above

    return open_broker(_installed_labs(), settings, chosen_gpu(settings))


def runner_deps(
    settings: Settings,
    store: Store,
    gpu: Gpu | None,
    owner: str,
    gate: "DeviceGate",
    fitness: "HostFitness | None" = None,
) -> "RunnerDeps":
    """What a runner works with; its host is watched where its fitness is known."""
    from grader_service.measure.kept_references import KeptReferences  # noqa: PLC0415 - see above
    from grader_service.measure.reference_run import time_reference  # noqa: PLC0415
    from grader_service.service.readiness import Host  # noqa: PLC0415
    from grader_service.service.run_spaces import WatchedHost  # noqa: PLC0415
    from grader_service.service.runner import RunnerDeps  # noqa: PLC0415
    from sandbox.warm.pool import WarmPool  # noqa: PLC0415
    from sandbox.warm.runner import WarmRunner  # noqa: PLC0415

    sandbox = open_sandbox(settings, gpu)
    device: Device = "cuda" if gpu is not None else "cpu"
    pool = WarmPool(settings.warm_runs) if settings.warm_runs else None
    references = None
    if settings.reference_minutes and gpu is not None:  # a rehearsal's ratio does not pass by two blocks
        quiet = contextlib.nullcontext if pool is None else pool.quiet
        references = KeptReferences(
            lambda task: time_reference(sandbox, task, device, gpu), 60 * settings.reference_minutes, quiet
        )
    return RunnerDeps(
        store=store,
        artifacts=open_artifacts(settings),
        sandbox=sandbox if pool is None else WarmRunner(sandbox, pool),
        unprepared=sandbox if gpu is not None else None,
        device=device,
        owner=owner,
        gate=gate,
        state_dir=settings.state_dir,
        gpu=gpu,
        lease_s=settings.lease_s,
        limit_s=settings.run_limit_s,
        retry=retry_policy(RUNS, settings),
        without_labs=tuple(labs_left_to_others(gpu)),
        preflights_only=settings.preflights_only,
        reuse_days=settings.reuse_days,
        references=references,
        host=Host() if fitness is None else WatchedHost(fitness, sandbox, settings.state_dir),
    )


def canary(settings: Settings, deps: "RunnerDeps", monitor: "GpuMonitor | None") -> "Canary | None":
    """What puts a runner's GPU back into service; None where the settings leave that to operators, or there is no GPU.

    Its pods are none of those that are prepared for runs, nor does it leave a recipe for them.
    """
    from grader_service.service.canary import Canary  # noqa: PLC0415
    from grader_service.service.canary_grading import grade_canary  # noqa: PLC0415 - see above

    if monitor is None or not settings.canary_minutes:
        return None
    sandbox = open_sandbox(settings, deps.gpu)
    return Canary(
        deps.store,
        monitor.uuid,
        monitor,
        lambda: grade_canary(sandbox, deps.device, deps.gpu, settings.state_dir),
        first_s=60 * settings.canary_minutes,
        owner=deps.owner,
    )


def labs_left_to_others(gpu: Gpu | None) -> Mapping[str, str]:
    """Ids of the installed labs that a worker on this GPU must not serve, with the reason."""
    from grader_service.service.placement import left_to_others  # noqa: PLC0415 - see above

    return left_to_others(_installed_labs(), gpu, len(os.sched_getaffinity(0)))


def arm_cpus() -> int:
    """Cores that a grader measures on: as many as the installed lab wants that wants the most."""
    return max((lab.limits.max_cpus for lab in _installed_labs()), default=0)


def _installed_labs() -> list[LabSpec]:
    """Those that can be read; of another one is told when a run of it comes."""
    labs = []
    for lab_id in lab_ids():
        with contextlib.suppress(GraderError):
            labs.append(read_lab(lab_text(lab_id), f"lab {lab_id}"))
    return labs


def device_id(gpu: Gpu | None, slot: int = 0) -> str:
    """The GPU's UUID, or a name for a slot of a host without one."""
    return gpu.uuid if gpu is not None else f"cpu:{socket.gethostname()}:{slot}"


@contextlib.contextmanager
def held(settings: Settings, gpu: Gpu | None, slot: int = 0) -> Iterator[Hold]:
    """Holds the device, and keeps this process and what it starts to the cores that come with it.

    Raises:
        ConfigurationError: another grader of this host holds it.
    """
    device = device_id(gpu, slot)
    allowed = tuple(sorted(os.sched_getaffinity(0)))
    wanted = min(arm_cpus(), len(allowed))
    # What is no arm's work may spread over as many cores as the host has for each of its devices.
    share = max(wanted, len(allowed) // max(1, len(find_gpus())))
    with hold_device(lock_path(settings, device), device, allowed, wanted, share) as hold:
        os.sched_setaffinity(0, hold.usable)
        try:
            yield hold
        finally:
            os.sched_setaffinity(0, allowed)


def lock_path(settings: Settings, device: str) -> Path:
    """The lock that keeps two graders of one host off the same device.

    Those of GPUs lie where every grader of the host looks, whatever its state folder is. A rehearsal's slot is a name
    that workers of one state folder share out among themselves.
    """
    if device.startswith("cpu:"):
        return settings.state_dir / "devices" / f"{device.replace(':', '-')}.lock"
    return settings.lock_dir / f"grader-{device}.lock"
