"""How a container gets its GPU on this host: by CDI, by the NVIDIA runtime, or by plain device nodes.

CDI is preferred (no hook runs as root with the container's environment), then the NVIDIA runtime, then device nodes
with the driver's libraries mounted, which works on any engine whose host keeps the driver in one folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEVICE_FOLDER = Path("/dev")
DRIVER_FOLDERS = (Path("/usr/local/nvidia"),)
CONTROL_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")


@dataclass(frozen=True)
class GpuAccess:
    """One way to give a container GPU `index`, as keyword arguments of `docker`'s container create call."""

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


def choose(engine_info: Mapping[str, object], index: int = 0) -> GpuAccess | GpuRefusal:
    """The best way that this engine and host offer for GPU `index`.

    Args:
        engine_info: what the engine's `info` call returned.
        index: number of the GPU as the driver counts.
    """
    reasons: list[str] = []
    node = DEVICE_FOLDER / f"nvidia{index}"
    if not node.exists():
        return GpuRefusal((f"{node} does not exist: no NVIDIA driver is loaded, or not for this GPU",))

    spec_dirs = engine_info.get("CDISpecDirs")
    folders = [Path(str(folder)) for folder in spec_dirs] if isinstance(spec_dirs, list) else []
    if not folders:
        reasons.append("CDI: the engine has it switched off (Docker 25 or newer with features.cdi)")
    elif not any(_has_cdi_spec(folder) for folder in folders):
        listed = ", ".join(map(str, folders))
        reasons.append(f"CDI: no nvidia.com/gpu specification in {listed}; run `nvidia-ctk cdi generate`")
    else:
        request = {"Driver": "cdi", "DeviceIDs": [f"nvidia.com/gpu={index}"]}
        return GpuAccess("cdi", device_requests=(request,))

    runtimes = engine_info.get("Runtimes")
    if isinstance(runtimes, Mapping) and "nvidia" in runtimes:
        return GpuAccess(
            "nvidia-runtime",
            runtime="nvidia",
            # `video` brings libnvcuvid, without which DALI silently decodes on the CPU; `utility` stays out.
            environment={"NVIDIA_VISIBLE_DEVICES": str(index), "NVIDIA_DRIVER_CAPABILITIES": "compute,video"},
        )
    reasons.append("NVIDIA runtime: the engine has no runtime named nvidia")

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
        paths = [path for path in folder.iterdir() if path.suffix in (".yaml", ".json")]
        return any("nvidia.com/gpu" in path.read_text(errors="replace") for path in paths)
    except OSError:
        return False
