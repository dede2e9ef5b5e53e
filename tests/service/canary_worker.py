"""A runner on a GPU that exists in memory only; what its pods do runs on the CPU."""

import dataclasses
import functools

from grader_service import wiring
from grader_service.host.facts import Gpu
from grader_service.logs import configure_logs
from grader_service.queue import run_worker
from grader_service.service.reference_keeping import ReferenceKeeping
from grader_service.settings import Settings
from tests.host.gpu.memory import InMemoryGpu

FACTS = Gpu(0, "H100", "GPU-00000009", "580.1", 80_000)

if __name__ == "__main__":
    configure_logs("canary")
    runner_deps = wiring.runner_deps
    wiring.chosen_gpu = lambda _: FACTS
    wiring.runner_deps = lambda *args: dataclasses.replace(runner_deps(*args), device="cpu")
    run_worker.NvmlGpu = InMemoryGpu
    run_worker.ReferenceKeeping = functools.partial(ReferenceKeeping, look_s=0.2)
    raise SystemExit(run_worker.run_worker(Settings()))
