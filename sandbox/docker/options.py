"""The sandbox's policy as one pure function: a pod's specification in, the engine's arguments out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.api import GuestPaths, PodSpec, Scratch
from sandbox.gpu_access import GpuAccess
from sandbox.seccomp import profile_text

GUEST_UID = 65534
"""Group of every pod, and its user where the engine gives pods none of their own."""
LABEL = "org.grader.run"
ROLE_LABEL = "org.grader.role"
STATE_LABEL = "org.grader.state"
GUEST_PATHS = GuestPaths(
    workspace="/workspace",
    tmp="/tmp",  # noqa: S108 - inside the pod
    shm="/dev/shm",  # noqa: S108
    submission="/grader/submission",
    shards="/grader/shards",
    lab_data="/data/lab",
)
GUEST_CODE = "/grader/code"
SOCKET_FOLDER = "/grader/link"
LOG_KIB = 256


@dataclass(frozen=True)
class PodFolders:
    """Host folders that this pod gets."""

    code: Path
    socket: Path
    submission: Path
    shards: Path
    lab_data: Path | None


@dataclass(frozen=True)
class ScratchVolumes:
    """Names of the run's scratch volumes."""

    workspace: str
    tmp: str
    shm: str


def container_options(
    spec: PodSpec,
    *,
    run_id: str,
    number: int,
    labels: Mapping[str, str],
    image: str,
    folders: PodFolders,
    volumes: ScratchVolumes,
    gpu: GpuAccess | None,
    uid: int,
    runtime: str | None = None,
) -> dict[str, Any]:
    """Keyword arguments for the engine's container create call.

    Everything is denied that is not listed: no network, no capabilities, no writable root, no new privileges, no
    swap, no core dumps, no system call beyond those of `sandbox.seccomp`, one connection to the host.
    """
    mounts = [_bind(host, guest) for _, host, guest in shown_folders(spec, folders)]
    tmpfs: dict[str, str] = {}
    shm_size: int | None = spec.shm_mib << 20
    if spec.scratch is Scratch.NONE:
        tmpfs[GUEST_PATHS.tmp] = f"rw,exec,nosuid,nodev,size=256m,nr_inodes=20000,mode=1777,uid={uid}"
    else:
        read_only = spec.scratch is Scratch.READ_ONLY
        shm_size = None  # the run's own volume is mounted there
        mounts += [
            _volume(volumes.workspace, GUEST_PATHS.workspace, read_only=read_only),
            _volume(volumes.tmp, GUEST_PATHS.tmp, read_only=read_only),
            _volume(volumes.shm, GUEST_PATHS.shm, read_only=read_only),
        ]
    options: dict[str, Any] = {
        "image": image,
        "command": guest_command(spec.program),
        "entrypoint": [],
        "name": f"grader-{run_id[:24]}-{number}-{spec.role.value}".replace("_", "-"),
        "labels": {**labels, ROLE_LABEL: spec.role.value},
        "environment": guest_environment(spec, gpu),
        "working_dir": GUEST_PATHS.workspace if spec.scratch is not Scratch.NONE else "/",
        "user": f"{uid}:{GUEST_UID}",
        "hostname": "pod",
        "stdin_open": False,
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true", f"seccomp={profile_text()}"],
        "ipc_mode": "private",
        "pids_limit": spec.pids,
        "mem_limit": spec.memory_mib << 20,
        "memswap_limit": spec.memory_mib << 20,
        "oom_score_adj": 500,  # on a host short of memory a pod goes before the engine and the grader
        "cpuset_cpus": ",".join(map(str, spec.cpus)),
        "ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        "tmpfs": tmpfs,
        "mounts": mounts,
        "log_config": {"Type": "json-file", "Config": {"max-size": f"{LOG_KIB}k", "max-file": "1"}},
    }
    if runtime is not None:
        options["runtime"] = runtime
    if shm_size is not None:
        options["shm_size"] = shm_size
    if gpu is not None:
        options["device_requests"] = list(gpu.device_requests)
        options["devices"] = [f"{node}:{node}:rw" for node in gpu.devices]
        options["mounts"] += [_bind(Path(host), guest) for host, guest in gpu.volumes.items()]
        if gpu.runtime is not None:
            options["runtime"] = gpu.runtime
    return options


def shown_folders(spec: PodSpec, folders: PodFolders) -> Iterator[tuple[str, Path, str]]:
    """A name, the host's folder and the pod's of each one that a pod sees, and can only read."""
    yield "code", folders.code, GUEST_CODE
    yield "link", folders.socket, SOCKET_FOLDER
    if spec.submission:
        yield "submission", folders.submission, GUEST_PATHS.submission
    if spec.shards:
        yield "shards", folders.shards, GUEST_PATHS.shards
    if folders.lab_data is not None and spec.role in ("learner", "scanner"):
        yield "lab-data", folders.lab_data, GUEST_PATHS.lab_data


def missing_runtime(engine_info: Mapping[str, object], runtime: str | None) -> str | None:
    """What is wrong with the OCI runtime of this name on this engine; None when nothing is, or none is named."""
    listed = engine_info.get("Runtimes")
    names = sorted(map(str, listed)) if isinstance(listed, Mapping) else []
    if runtime is None or runtime in names:
        return None
    return (
        f"GRADER_OCI_RUNTIME: expected a runtime of the Docker engine ({', '.join(names)}), got {runtime!r}; add it to "
        "the engine (`runtimes` in daemon.json) or name another"
    )


def labels(run_id: str, state_dir: Path) -> dict[str, str]:
    """Labels of everything that belongs to a run, by which a sweep finds leftovers."""
    return {LABEL: run_id, STATE_LABEL: str(state_dir)}


def guest_command(program: str, python: str = "python3", code: str = GUEST_CODE) -> list[str]:
    """Command line that runs one guest program: our code only on the path, no site of a user, no bytecode written."""
    return [python, "-P", "-s", "-B", "-u", f"{code}/grader_guest/boot.py", program]


def guest_environment(spec: PodSpec, gpu: GpuAccess | None) -> dict[str, str]:
    """The pod's environment beside the image's own; a learner never adds to it."""
    home = GUEST_PATHS.workspace if spec.scratch is Scratch.READ_WRITE else GUEST_PATHS.tmp
    return {
        "HOME": home,
        "TMPDIR": GUEST_PATHS.tmp,
        "USER": "pod",  # its id has no name in the image, which `getpass.getuser` would ask for
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "XDG_CACHE_HOME": f"{GUEST_PATHS.tmp}/.cache",
        "GRADER_DATA_DIR": GUEST_PATHS.lab_data,
        "GRADER_LINK": f"{SOCKET_FOLDER}/host.sock",
        **(gpu.environment if gpu else {}),
        **spec.environment,
    }


def scratch_flags(size_mib: int, inodes: int, uid: int = GUEST_UID) -> str:
    """Mount options of a tmpfs that the guest may fill up to this many MiB and files."""
    return f"size={size_mib}m,nr_inodes={inodes},mode=1777,uid={uid},gid={GUEST_UID},nosuid,nodev"


def scratch_volume_options(
    size_mib: int, inodes: int, name: str, *, labels: Mapping[str, str], uid: int
) -> dict[str, Any]:
    """Arguments for a tmpfs volume: memory that the engine mounts while a pod uses it, its size kept by the kernel."""
    return {
        "name": name,
        "driver": "local",
        "driver_opts": {"type": "tmpfs", "device": "tmpfs", "o": scratch_flags(size_mib, inodes, uid)},
        "labels": dict(labels),
    }


def _bind(host: Path, guest: str) -> Mapping[str, Any]:
    """A folder of the host, read-only: a socket in it can still be connected to."""
    return {
        "Type": "bind",
        "Source": str(host),
        "Target": guest,
        "ReadOnly": True,
        "BindOptions": {"Propagation": "rprivate"},
    }


def _volume(name: str, guest: str, *, read_only: bool) -> Mapping[str, Any]:
    # NoCopy: the image's own /tmp must not be copied into the volume.
    return {
        "Type": "volume",
        "Source": name,
        "Target": guest,
        "ReadOnly": read_only,
        "VolumeOptions": {"NoCopy": True},
    }
