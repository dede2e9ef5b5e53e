"""Examines this host: engine, images, GPU, its JPEG decoder, cores, memory, disk, and the embedded mode's libraries."""

import contextlib
import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from grader_service import state_folder
from grader_service.errors import GraderError, SandboxUnavailable
from grader_service.host.confinement import files_are_confined
from grader_service.host.facts import Gpu, find_gpus, total_memory_mib, usable_cpus
from grader_service.host.sandboxes import gpu_name, open_runner
from grader_service.settings import Settings
from sandbox.docker.options import missing_runtime
from sandbox.gpu_access import GpuRefusal, choose

_LAB_IMAGE = "grader-lab"
_SHM = "/dev/shm"  # noqa: S108 - examined, not written to
_LEAST_CPUS = 2
_LEAST_MEMORY_MIB = 8000
_LEAST_DISK = 10 << 30
_LEAST_SHM = 1 << 30
# Versions below which escapes from containers are known, by the change logs of runc and of NVIDIA's container toolkit.
_RUNC_MENDED = ((1, 3, 6), (1, 4, 3), (1, 5, 0))
"""First release of each line that mends CVE-2025-31133, CVE-2025-52565, CVE-2025-52881 and CVE-2026-41579."""
_TOOLKIT_MENDED = (1, 17, 8)
"""Mends CVE-2024-0132, CVE-2025-23266 and CVE-2025-23267."""


class Level(StrEnum):
    """How good a finding is."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    level: Level
    found: str
    advice: str = ""
    required: bool = False
    """Whether grading in Docker is impossible without it."""


def examine(settings: Settings) -> list[Finding]:
    """Everything that decides what this host can grade; never raises for what it finds."""
    # Docker's client is imported by those who ask: every command of the command line knows this module.
    from sandbox.docker.runner import connect_engine  # noqa: PLC0415

    findings = [_cpus(), _memory(), _shm(), _disk(settings.state_dir), _state_folder(settings.state_dir)]
    findings += [_lock_folder(settings.lock_dir), _files_of_checks(), _starter(settings)]
    client: Any = None
    try:
        if settings.pod_broker is None:
            client = connect_engine(10.0)
    except SandboxUnavailable as error:
        findings.append(_missing("Docker engine", str(error), "install docker.io and start dockerd"))
    if client is not None:
        findings += _engine(client)
        findings += _runc(client.version())
        findings += _oci_runtime(client.info(), settings.oci_runtime or None)
        findings.append(_image(client, settings.lab_image or _LAB_IMAGE))
    findings += _gpu(client, settings.oci_runtime or None)
    findings.append(_embedded())
    return findings


def _ok(topic: str, found: str) -> Finding:
    return Finding(topic, Level.OK, found)


def _limited(topic: str, found: str, advice: str) -> Finding:
    return Finding(topic, Level.LIMITED, found, advice)


def _missing(topic: str, found: str, advice: str) -> Finding:
    return Finding(topic, Level.MISSING, found, advice, required=True)


def _cpus() -> Finding:
    count = len(usable_cpus(1 << 16))
    if count < _LEAST_CPUS:
        return _limited("cores", f"{count}", "two or more keep loader workers and the loop apart")
    return _ok("cores", f"{count}")


def _memory() -> Finding:
    mib = total_memory_mib()
    if mib < _LEAST_MEMORY_MIB:
        return _limited("memory", f"{mib} MiB", "pods of the DALI lab use up to 8 GiB")
    return _ok("memory", f"{mib} MiB")


def _shm() -> Finding:
    size = shutil.disk_usage(_SHM).total
    if size < _LEAST_SHM:
        advice = "the process sandbox's loader workers may run out; Docker pods have their own"
        return _limited(_SHM, f"{size >> 20} MiB", advice)
    return _ok(_SHM, f"{size >> 20} MiB")


def _disk(state_dir: Path) -> Finding:
    place = next(path for path in (state_dir, *state_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    topic, found = f"disk at {state_dir}", f"{free >> 30} GiB free"
    return _limited(topic, found, "free some space") if free < _LEAST_DISK else _ok(topic, found)


def _state_folder(state_dir: Path) -> Finding:
    misfit = state_folder.misfit(state_dir)
    return _ok("state folder", str(state_dir)) if misfit is None else _missing("state folder", misfit, "as it says")


def _files_of_checks() -> Finding:
    if files_are_confined():
        return _ok("files of checks", "checks read what they import from, and change nothing (Landlock)")
    return _limited(
        "files of checks",
        "this kernel has no Landlock, or it may not be used here: a check reads and removes what its judge's user can",
        "Linux 5.13 or later, with Docker 20.10.24 or later; keep the signing key with `grader signer`",
    )


def _lock_folder(lock_dir: Path) -> Finding:
    if os.access(lock_dir, os.W_OK | os.X_OK):
        return _ok("lock folder", str(lock_dir))
    found = f"{lock_dir} is no folder that uid {os.geteuid()} can write to"
    return _missing("lock folder", found, "set GRADER_LOCK_DIR to one that every grader of this host can write to")


def _starter(settings: Settings) -> Finding:
    """Who starts pods, and whether the broker does where it is one."""
    if settings.pod_broker is None:
        return _ok("pods", "started by this process, which talks to the Docker engine itself")
    try:
        runner = open_runner("docker", _LAB_IMAGE, settings, None)
        runner.look()
    except GraderError as error:
        return _missing("pods", str(error), "start `grader pods`")
    facts = runner.facts
    found = f"started by the pod broker {settings.pod_broker}: {facts.engine}, {facts.oci_runtime}, {facts.image}"
    return _ok("pods", f"{found}, GPU by {facts.gpu_access}" if facts.gpu_access else found)


def _engine(client: Any) -> list[Finding]:
    info = client.info()
    version = f"{info.get('ServerVersion')}, cgroup v{info.get('CgroupVersion', '?')}, {info.get('Driver')}"
    findings = [_ok("Docker engine", version)]
    if any("seccomp" in str(option) for option in info.get("SecurityOptions") or ()):
        findings.append(_ok("seccomp", "on"))
    else:
        advice = "use an engine and kernel with seccomp; the sandbox refuses to run without it"
        findings.append(_missing("seccomp", "off", advice))
    for key, topic in (("MemoryLimit", "memory limits"), ("PidsLimit", "process limits"), ("CPUSet", "CPU sets")):
        if not info.get(key, True):
            findings.append(_missing(topic, "the engine cannot set them", "enable the cgroup controller"))
    return findings


def _runc(versions: Any) -> list[Finding]:
    """The engine's runtime, and whether escapes from it are known."""
    parts = {part.get("Name"): str(part.get("Version")) for part in versions.get("Components") or ()}
    version = _version_in(parts.get("runc", ""))
    if version is None:
        return []
    if _runc_is_vulnerable(version):
        advice = "has known escapes, unless your distribution mended them: update runc (docs/security.md)"
        return [_limited("runc", parts["runc"], advice)]
    return [_ok("runc", parts["runc"])]


def _runc_is_vulnerable(version: tuple[int, int, int]) -> bool:
    """Whether escapes from this release are known; distributions may have mended an older one."""
    line = next((mended for mended in _RUNC_MENDED if mended[:2] == version[:2]), None)
    return version < (line or _RUNC_MENDED[-1])


def _version_in(text: str) -> tuple[int, int, int] | None:
    """The first `major.minor.patch` of a text, as numbers; None where there is none."""
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _oci_runtime(info: Any, runtime: str | None) -> list[Finding]:
    """The runtime that the settings name, where they do."""
    if runtime is None:
        return []
    problem = missing_runtime(info, runtime)
    return [_ok("OCI runtime", runtime) if problem is None else _missing("OCI runtime", runtime, problem)]


def _toolkit() -> list[Finding]:
    """The NVIDIA container toolkit, where it is installed."""
    try:
        command = ["nvidia-ctk", "--version"]  # wherever this host has it
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    version = _version_in(done.stdout)
    if version is None:
        return []
    topic, found = "NVIDIA container toolkit", ".".join(map(str, version))
    if version < _TOOLKIT_MENDED:
        return [_limited(topic, found, "has known escapes: update it (docs/security.md)")]
    return [_ok(topic, found)]


def _image(client: Any, name: str) -> Finding:
    found = client.images.list(name=name)
    if not found:
        return _missing("lab image", f"{name} is not there", "run `grader images build`")
    return _ok("lab image", f"{name} {found[0].short_id}")


def _gpu(client: Any, oci_runtime: str | None) -> list[Finding]:
    gpus = find_gpus()
    if not gpus:
        found = "no NVIDIA driver answers, or its GPUs are in MIG mode and have no instances"
        return [_limited("GPU", found, "official grading needs one; rehearsals run without")]
    findings = [_device(gpu) for gpu in gpus]
    if client is not None:
        access = choose(client.info(), gpu_name(gpus[0]), oci_runtime)
        if isinstance(access, GpuRefusal):
            advice = "write a CDI description with nvidia-ctk (docs/security.md)"
            findings.append(Finding("GPU in containers", Level.MISSING, "; ".join(access.reasons), advice))
        else:
            findings.append(_ok("GPU in containers", access.name))
    return [*findings, *_toolkit(), _jpeg_decoder(gpus[0])]


def _device(gpu: Gpu) -> Finding:
    found = f"{gpu.model}, driver {gpu.driver}, {gpu.uuid}"
    if gpu.mig is not None and not gpu.mig.alone:
        advice = "another compute instance shares its GPU instance; workers refuse it (nvidia-smi mig -cgi PROFILE -C)"
        return _limited("GPU", found, advice)
    return _ok("GPU", found)


def _jpeg_decoder(gpu: Gpu) -> Finding:
    topic = "hardware JPEG decoder"
    try:
        ctypes.CDLL("libnvcuvid.so.1")
    except OSError:
        advice = "give containers the driver's video capability; DALI decodes on the CPU without it"
        return _limited(topic, "libnvcuvid.so.1 cannot be loaded on this host", advice)
    if gpu.mig is not None:
        if gpu.mig.jpeg_engines:
            return _ok(topic, f"{gpu.mig.jpeg_engines} for the instance {gpu.mig.profile}")
        advice = "it decodes JPEG on its cores and the CPU; where a GPU offers profiles with +me, those have a decoder"
        return _limited(topic, f"none that the driver tells of for {gpu.mig.profile}", advice)
    with contextlib.suppress(Exception):
        import pynvml  # noqa: PLC0415 - optional

        pynvml.nvmlInit()
        utilisation, _ = pynvml.nvmlDeviceGetJpgUtilization(pynvml.nvmlDeviceGetHandleByIndex(gpu.index))
        return _ok(topic, f"present, {utilisation} % busy")
    return _limited(topic, "the driver reports none", "this GPU decodes JPEG on its cores and the CPU")


def _embedded() -> Finding:
    missing = [name for name in ("torch", "torchvision", "nvidia.dali") if not _installed(name)]
    if missing:
        advice = "install the `lab` extra, or set GRADER_LAB_PYTHON; only --sandbox process needs it"
        return _limited("embedded mode", f"{', '.join(missing)} not installed here", advice)
    return _ok("embedded mode", "torch, torchvision and DALI are installed here")


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
