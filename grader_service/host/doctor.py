"""Examines this host: engine, images, GPU, its JPEG decoder, cores, memory, disk, and the embedded mode's libraries."""

import contextlib
import ctypes
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from grader_service import state_folder
from grader_service.errors import GraderError, SandboxUnavailable
from grader_service.host import known_vulnerabilities
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
    findings.append(_lock_folder(settings.lock_dir))
    findings.append(_files_of_checks())
    findings.append(_starter(settings))
    client: Any = None
    try:
        if settings.pod_broker is None:
            client = connect_engine(10.0)
    except SandboxUnavailable as error:
        findings.append(
            Finding("Docker engine", Level.MISSING, str(error), "install docker.io and start dockerd", required=True)
        )
    if client is not None:
        findings += _engine(client)
        findings += _runc(client.version())
        findings += _oci_runtime(client.info(), settings.oci_runtime or None)
        findings.append(_image(client, settings.lab_image or _LAB_IMAGE))
    findings += _gpu(client, settings.oci_runtime or None)
    findings.append(_embedded())
    return findings


def _cpus() -> Finding:
    count = len(usable_cpus(1 << 16))
    if count < _LEAST_CPUS:
        return Finding("cores", Level.LIMITED, f"{count}", "two or more keep loader workers and the loop apart")
    return Finding("cores", Level.OK, f"{count}")


def _memory() -> Finding:
    mib = total_memory_mib()
    level = Level.OK if mib >= _LEAST_MEMORY_MIB else Level.LIMITED
    return Finding("memory", level, f"{mib} MiB", "" if level is Level.OK else "pods of the DALI lab use up to 8 GiB")


def _shm() -> Finding:
    size = shutil.disk_usage(_SHM).total
    level = Level.OK if size >= _LEAST_SHM else Level.LIMITED
    advice = "" if level is Level.OK else "the process sandbox's loader workers may run out; Docker pods have their own"
    return Finding(_SHM, level, f"{size >> 20} MiB", advice)


def _disk(state_dir: Path) -> Finding:
    place = next(path for path in (state_dir, *state_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    level = Level.OK if free >= _LEAST_DISK else Level.LIMITED
    return Finding(
        f"disk at {state_dir}", level, f"{free >> 30} GiB free", "" if level is Level.OK else "free some space"
    )


def _state_folder(state_dir: Path) -> Finding:
    misfit = state_folder.misfit(state_dir)
    if misfit is not None:
        return Finding("state folder", Level.MISSING, misfit, "as it says", required=True)
    return Finding("state folder", Level.OK, str(state_dir))


def _files_of_checks() -> Finding:
    if files_are_confined():
        return Finding("files of checks", Level.OK, "checks read what they import from, and change nothing (Landlock)")
    return Finding(
        "files of checks",
        Level.LIMITED,
        "this kernel has no Landlock, or it may not be used here: a check reads and removes what its judge's user can",
        "Linux 5.13 or later, with Docker 20.10.24 or later; keep the signing key with `grader signer`",
    )


def _lock_folder(lock_dir: Path) -> Finding:
    if os.access(lock_dir, os.W_OK | os.X_OK):
        return Finding("lock folder", Level.OK, str(lock_dir))
    found = f"{lock_dir} is no folder that uid {os.geteuid()} can write to"
    advice = "set GRADER_LOCK_DIR to one that every grader of this host can write to"
    return Finding("lock folder", Level.MISSING, found, advice, required=True)


def _starter(settings: Settings) -> Finding:
    """Who starts pods, and whether the broker does where it is one."""
    topic = "pods"
    if settings.pod_broker is None:
        return Finding(topic, Level.OK, "started by this process, which talks to the Docker engine itself")
    try:
        runner = open_runner("docker", _LAB_IMAGE, settings, None)
        runner.look()
    except GraderError as error:
        return Finding(topic, Level.MISSING, str(error), "start `grader pods`", required=True)
    facts = runner.facts
    found = f"started by the pod broker {settings.pod_broker}: {facts.engine}, {facts.oci_runtime}, {facts.image}"
    return Finding(topic, Level.OK, f"{found}, GPU by {facts.gpu_access}" if facts.gpu_access else found)


def _engine(client: Any) -> list[Finding]:
    info = client.info()
    version = f"{info.get('ServerVersion')}, cgroup v{info.get('CgroupVersion', '?')}, {info.get('Driver')}"
    findings = [Finding("Docker engine", Level.OK, version)]
    if any("seccomp" in str(option) for option in info.get("SecurityOptions") or ()):
        findings.append(Finding("seccomp", Level.OK, "on"))
    else:
        advice = "use an engine and kernel with seccomp; the sandbox refuses to run without it"
        findings.append(Finding("seccomp", Level.MISSING, "off", advice, required=True))
    for key, topic in (("MemoryLimit", "memory limits"), ("PidsLimit", "process limits"), ("CPUSet", "CPU sets")):
        if not info.get(key, True):
            findings.append(
                Finding(
                    topic, Level.MISSING, "the engine cannot set them", "enable the cgroup controller", required=True
                )
            )
    return findings


def _runc(versions: Any) -> list[Finding]:
    """The engine's runtime, and whether escapes from it are known."""
    parts = {part.get("Name"): str(part.get("Version")) for part in versions.get("Components") or ()}
    version = known_vulnerabilities.version_in(parts.get("runc", ""))
    if version is None:
        return []
    if known_vulnerabilities.runc_is_vulnerable(version):
        advice = "has known escapes, unless your distribution mended them: update runc (docs/security.md)"
        return [Finding("runc", Level.LIMITED, parts["runc"], advice)]
    return [Finding("runc", Level.OK, parts["runc"])]


def _oci_runtime(info: Any, runtime: str | None) -> list[Finding]:
    """The runtime that the settings name, where they do."""
    if runtime is None:
        return []
    if (problem := missing_runtime(info, runtime)) is not None:
        return [Finding("OCI runtime", Level.MISSING, runtime, problem, required=True)]
    return [Finding("OCI runtime", Level.OK, runtime)]


def _toolkit() -> list[Finding]:
    """The NVIDIA container toolkit, where it is installed."""
    try:
        command = ["nvidia-ctk", "--version"]  # wherever this host has it
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    version = known_vulnerabilities.version_in(done.stdout)
    if version is None:
        return []
    found = ".".join(map(str, version))
    if known_vulnerabilities.toolkit_is_vulnerable(version):
        advice = "has known escapes: update it (docs/security.md)"
        return [Finding("NVIDIA container toolkit", Level.LIMITED, found, advice)]
    return [Finding("NVIDIA container toolkit", Level.OK, found)]


def _image(client: Any, name: str) -> Finding:
    found = client.images.list(name=name)
    if not found:
        return Finding("lab image", Level.MISSING, f"{name} is not there", "run `grader images build`", required=True)
    return Finding("lab image", Level.OK, f"{name} {found[0].short_id}")


def _gpu(client: Any, oci_runtime: str | None) -> list[Finding]:
    gpus = find_gpus()
    if not gpus:
        return [
            Finding(
                "GPU",
                Level.LIMITED,
                "no NVIDIA driver answers, or its GPUs are in MIG mode and have no instances",
                "official grading needs one; rehearsals run without",
            )
        ]
    findings = [_device(gpu) for gpu in gpus]
    if client is not None:
        access = choose(client.info(), gpu_name(gpus[0]), oci_runtime)
        if isinstance(access, GpuRefusal):
            findings.append(
                Finding(
                    "GPU in containers",
                    Level.MISSING,
                    "; ".join(access.reasons),
                    "write a CDI description with nvidia-ctk (docs/security.md)",
                )
            )
        else:
            findings.append(Finding("GPU in containers", Level.OK, access.name))
    findings += _toolkit()
    findings.append(_jpeg_decoder(gpus[0]))
    return findings


def _device(gpu: Gpu) -> Finding:
    found = f"{gpu.model}, driver {gpu.driver}, {gpu.uuid}"
    if gpu.mig is not None and not gpu.mig.alone:
        advice = "another compute instance shares its GPU instance; workers refuse it (nvidia-smi mig -cgi PROFILE -C)"
        return Finding("GPU", Level.LIMITED, found, advice)
    return Finding("GPU", Level.OK, found)


def _jpeg_decoder(gpu: Gpu) -> Finding:
    topic = "hardware JPEG decoder"
    try:
        ctypes.CDLL("libnvcuvid.so.1")
    except OSError:
        advice = "give containers the driver's video capability; DALI decodes on the CPU without it"
        return Finding(topic, Level.LIMITED, "libnvcuvid.so.1 cannot be loaded on this host", advice)
    if gpu.mig is not None:
        if gpu.mig.jpeg_engines:
            return Finding(topic, Level.OK, f"{gpu.mig.jpeg_engines} for the instance {gpu.mig.profile}")
        advice = "it decodes JPEG on its cores and the CPU; where a GPU offers profiles with +me, those have a decoder"
        return Finding(topic, Level.LIMITED, f"none that the driver tells of for {gpu.mig.profile}", advice)
    with contextlib.suppress(Exception):
        import pynvml  # noqa: PLC0415 - optional

        pynvml.nvmlInit()
        utilisation, _ = pynvml.nvmlDeviceGetJpgUtilization(pynvml.nvmlDeviceGetHandleByIndex(gpu.index))
        return Finding(topic, Level.OK, f"present, {utilisation} % busy")
    return Finding(topic, Level.LIMITED, "the driver reports none", "this GPU decodes JPEG on its cores and the CPU")


def _embedded() -> Finding:
    missing = [name for name in ("torch", "torchvision", "nvidia.dali") if not _installed(name)]
    if missing:
        advice = "install the `lab` extra, or set GRADER_LAB_PYTHON; only --sandbox process needs it"
        return Finding("embedded mode", Level.LIMITED, f"{', '.join(missing)} not installed here", advice)
    return Finding("embedded mode", Level.OK, "torch, torchvision and DALI are installed here")


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
