"""On a GPU host: which GPU a pod has, by every way of giving it one, and which cores graders of one host take.

    python bench/gpu_host.py

Each GPU is given to a pod of ours in every way that this engine and host offer: by the names of the engine's CDI
specification as they are, by UUIDs that are added to it for the time of the run, and by device nodes. CUDA in the pod
says what it has. A pod that is given another GPU than its runner holds must be refused. Then one process for each GPU
holds it, all at once, as workers do; a second one for the first GPU must be refused. Exit status 1 where any of this
does not hold.
"""

import contextlib
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from grader_service.errors import SandboxUnavailable
from grader_service.host.facts import Gpu, find_gpus
from grader_service.host.sandboxes import gpu_name
from grader_service.run.pod_set import trusted_spec
from grader_service.run.trusted_pod import await_ready, begin_gpu, require_gpu
from grader_service.settings import Settings
from sandbox.api import PodRole, SpaceLimits
from sandbox.docker.runner import DockerRunner, connect_engine
from sandbox.gpu_access import GpuRefusal, choose

CDI_FILE = Path("/etc/cdi/grader-bench.yaml")
_RELOAD_S = 3.0
"""The engine reads a new specification by itself."""
HOLDER = """
import os, sys
from grader_service import wiring
from grader_service.errors import ConfigurationError
from grader_service.host.facts import find_gpus
from grader_service.settings import Settings
gpu = next(gpu for gpu in find_gpus() if gpu.uuid == sys.argv[1])
try:
    with wiring.held(Settings(), gpu) as hold:
        shared = [neighbour.device for neighbour in hold.neighbours]
        print(wiring.arm_cpus(), *sorted(os.sched_getaffinity(0)), *shared, flush=True)
        sys.stdin.readline()
except ConfigurationError as error:
    print("refused:", error, flush=True)
"""


def main() -> int:
    """Prints a line for each pod and each process."""
    gpus = find_gpus()
    if not gpus:
        raise SystemExit("this host has no GPU")
    right = True
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        info = connect_engine().info()
        for gpu in gpus:
            right &= given(folder, info, gpu, gpu)
        with named_by_uuid(gpus):
            for gpu in gpus:
                right &= given(folder, info, gpu, gpu)
        bare = {key: value for key, value in info.items() if key not in ("CDISpecDirs", "Runtimes")}
        for gpu in gpus:
            right &= given(folder, bare, gpu, gpu)
        if len(gpus) > 1:
            right &= not given(folder, info, gpus[1], gpus[0])
    return int(not (holding(gpus) and right))


def given(folder: str, info: Mapping[str, object], gpu: Gpu, held: Gpu) -> bool:
    """Whether a pod that is given `gpu` passes for one of a runner that holds `held`."""
    access = choose(info, gpu_name(gpu))
    if isinstance(access, GpuRefusal):
        print(f"GPU {gpu.index}: {'; '.join(access.reasons)}")
        return False
    runner = DockerRunner(Settings().lab_image or "grader-lab", Path(folder), gpu=gpu_name(gpu))
    runner.gpu = access  # a way that it would not have chosen
    names = [name for request in access.device_requests for name in request["DeviceIDs"]] or list(access.devices)[:1]
    since = time.monotonic()
    with runner.open_run(secrets.token_hex(16), SpaceLimits(64, 1000, 64)) as space:
        pod = space.start(trusted_spec(PodRole.CLEAN_ROOM, "trusted.clean_room", (0, 1), on_gpu=True))
        await_ready(pod)
        ready_s = time.monotonic() - since
        try:
            begin_gpu(pod)
            require_gpu(pod, held)
        except SandboxUnavailable as error:
            print(f"GPU {gpu.index} by {access.name} {names} for a runner of GPU {held.index}: refused: {error}")
            return False
        asked_s = time.monotonic() - since - ready_s
    print(
        f"GPU {gpu.index} by {access.name} {names}: CUDA says {held.uuid}; ready {ready_s:.1f} s, asked {asked_s:.2f} s"
    )
    return True


@contextlib.contextmanager
def named_by_uuid(gpus: list[Gpu]) -> Iterator[None]:
    """The engine's specification has every GPU by its UUID too, as `nvidia-ctk --device-name-strategy=uuid` writes."""
    found = next(path for path in CDI_FILE.parent.iterdir() if path.suffix in (".yaml", ".json"))
    text = found.read_text()
    whole = json.loads(text) if found.suffix == ".json" else yaml.safe_load(text)
    by_name = {str(device["name"]): device for device in whole["devices"]}
    devices = [{**by_name[str(gpu_name(gpu).minor)], "name": gpu.uuid} for gpu in gpus]
    CDI_FILE.write_text(yaml.safe_dump({**whole, "devices": devices}))
    try:
        time.sleep(_RELOAD_S)
        yield
    finally:
        CDI_FILE.unlink()
        time.sleep(_RELOAD_S)


def holding(gpus: list[Gpu]) -> bool:
    """Whether processes that hold one GPU each measure on cores of their own, and a second one of a GPU is refused."""
    taken: list[set[str]] = []
    right = True
    with contextlib.ExitStack() as stack:
        for gpu in gpus:
            count, *rest = stack.enter_context(holder(gpu))
            cores, shared = [word for word in rest if word.isdigit()], [word for word in rest if not word.isdigit()]
            measuring = set(cores[: int(count)])
            right &= not shared and not any(measuring & others for others in taken)
            taken.append(measuring)
            print(f"the holder of GPU {gpu.index}: {len(cores)} cores, {cores[0]} to {cores[-1]}; measures on {count}")
        second = stack.enter_context(holder(gpus[0]))
        print(f"a second holder of GPU {gpus[0].index}: {' '.join(second)}")
        right &= second[0] == "refused:"
    return right


@contextlib.contextmanager
def holder(gpu: Gpu) -> Iterator[list[str]]:
    """A process that holds it; what it said."""
    command = [sys.executable, "-c", HOLDER, gpu.uuid]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().split()
        with contextlib.suppress(OSError):
            process.stdin.write("\n")
            process.stdin.close()


if __name__ == "__main__":
    raise SystemExit(main())
