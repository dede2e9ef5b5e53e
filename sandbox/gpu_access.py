"""How a container gets its GPU on this host: by CDI, by the NVIDIA runtime, or by plain device nodes.

CDI is preferred (no hook runs as root with the container's environment), then the NVIDIA runtime, then device nodes
with the driver's libraries mounted, which works on any engine whose host keeps the driver in one folder.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

DEVICE_FOLDER = Path("/dev")
DRIVER_FOLDERS = (Path("/usr/local/nvidia"),)
CONTROL_NODES = ("nvidiactl", "nvidia-uvm")
"""Not nvidia-uvm-tools, which traces memory and which CUDA does not need."""
_KIND = "nvidia.com/gpu"


@dataclass(frozen=True)
class GpuName:
    """What engines may call a GPU, or an instance of a partitioned GPU (MIG)."""

    uuid: str
    index: int
    """Of the GPU, as the driver counts those that it shows to this process: a worker in a container sees only some."""
    minor: int
    """Of the GPU's device node, which is the same in every container of the host."""
    instance: int | None = None
    """Its number among the instances of the GPU; None for the whole GPU."""


@dataclass(frozen=True)
class GpuAccess:
    """One way to give a container a GPU, as keyword arguments of `docker`'s container create call."""

    name: str
    device_requests: tuple[Mapping[str, object], ...] = ()
    runtime: str | None = None
    devices: tuple[str, ...] = ()
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Host folder to container folder, mounted read-only."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GpuRefusal:
    """Why no way was found; one sentence per way that was looked at."""

    reasons: tuple[str, ...]


def choose(engine_info: Mapping[str, object], gpu: GpuName, oci_runtime: str | None = None) -> GpuAccess | GpuRefusal:
    """The best way that this engine and host offer for this GPU, or for one instance of it.

    Args:
        engine_info: what the engine's `info` call returned.
        oci_runtime: the runtime that pods get, whatever the GPU needs; None where that is left to this choice.
    """
    reasons: list[str] = []
    node = DEVICE_FOLDER / f"nvidia{gpu.minor}"
    if not node.exists():
        return GpuRefusal((f"{node} does not exist: no NVIDIA driver is loaded, or not for this GPU",))

    spec_dirs = engine_info.get("CDISpecDirs")
    folders = [Path(str(folder)) for folder in spec_dirs] if isinstance(spec_dirs, list) else []
    if not folders:
        reasons.append("CDI: the engine has it switched off (Docker 25 or newer with features.cdi)")
    elif not any(_has_cdi_spec(folder) for folder in folders):
        listed = ", ".join(map(str, folders))
        reasons.append(f"CDI: no {_KIND} specification in {listed}; run `nvidia-ctk cdi generate`")
    elif (name := _cdi_name(folders, gpu)) is None:
        reasons.append(
            f"CDI: no specification names {gpu.uuid}; run `nvidia-ctk cdi generate --device-name-strategy=uuid`, "
            "after every change of GPUs or instances"
        )
    else:
        request = {"Driver": "cdi", "DeviceIDs": [f"{_KIND}={name}"]}
        return GpuAccess("cdi", device_requests=(request,))

    runtimes = engine_info.get("Runtimes")
    if oci_runtime not in (None, "nvidia"):
        reasons.append(f"NVIDIA runtime: GRADER_OCI_RUNTIME names {oci_runtime}")
    elif isinstance(runtimes, Mapping) and "nvidia" in runtimes:
        return GpuAccess(
            "nvidia-runtime",
            runtime="nvidia",
            # `video` brings libnvcuvid, without which DALI silently decodes on the CPU; `utility` stays out.
            environment={
                "NVIDIA_VISIBLE_DEVICES": gpu.uuid,
                "NVIDIA_DRIVER_CAPABILITIES": "compute,video",
            },
        )
    else:
        reasons.append("NVIDIA runtime: the engine has no runtime named nvidia")
    if gpu.instance is not None:
        # The node of the GPU opens it as a whole; which instances a container may use is said by nodes of the driver's.
        reasons.append("device nodes: they are not handed out for one MIG instance; use CDI or the NVIDIA runtime")
        return GpuRefusal(tuple(reasons))

    for folder in DRIVER_FOLDERS:
        if (folder / "lib64").is_dir():
            controls = (DEVICE_FOLDER / name for name in CONTROL_NODES)
            return GpuAccess(
                "device-nodes",
                devices=(str(node), *(str(control) for control in controls if control.exists())),
                volumes={str(folder): str(folder)},
                environment={"LD_LIBRARY_PATH": f"{folder}/lib64:{folder}/lib"},
            )
    reasons.append(f"device nodes: the driver's libraries are not in {', '.join(map(str, DRIVER_FOLDERS))}")
    return GpuRefusal(tuple(reasons))


def _has_cdi_spec(folder: Path) -> bool:
    try:
        return any(_KIND in path.read_text(errors="replace") for path in _cdi_files(folder))
    except OSError:
        return False


def _cdi_files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in (".yaml", ".json")]


def _cdi_name(folders: Sequence[Path], gpu: GpuName) -> str | None:
    """How the engine's specifications name it, which depends on how they were written.

    A UUID comes first: a number may be another's since the specification was written. Numbers are those of the host's
    GPUs; where this process seems to see only some of them, its own numbers mean others there.
    """
    listed = {name for folder in folders for name in _cdi_names(folder)}
    names = [gpu.uuid]
    if gpu.index == gpu.minor:
        number = f"{gpu.index}" if gpu.instance is None else f"{gpu.index}:{gpu.instance}"
        names += [number, f"{'gpu' if gpu.instance is None else 'mig'}{number}"]
    return next((name for name in names if name in listed), None)


def _cdi_names(folder: Path) -> Iterator[str]:
    """Names of the devices that this folder's specifications describe; one that cannot be read describes none."""
    try:
        paths = _cdi_files(folder)
    except OSError:
        return
    for path in paths:
        try:
            text = path.read_text()
            found = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        except (OSError, ValueError, yaml.YAMLError):
            continue
        if isinstance(found, Mapping) and found.get("kind") == _KIND and isinstance(found.get("devices"), list):
            for device in found["devices"]:
                if isinstance(device, Mapping):
                    yield str(device.get("name"))
