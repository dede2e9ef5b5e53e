"""On a GPU host: what NVML says, and gradings through both halves of the service with the GPU's steward between them.

    python bench/gpu_service.py

Needs Docker, a lab image and one GPU; neither Redis nor PostgreSQL. Grades the reference, then a submission whose
kernel writes outside its memory (an Xid that is the learner's own), then the reference's first steps again: the GPU
must still be in service and clean. Then the GPU is put into quarantine by hand, and its canary must bring it back; the
exit status is 1 where it does not.
"""

import base64
import json
import sys
import tempfile
import time
from pathlib import Path

from checks.registry import Registry
from grader_service import wiring
from grader_service.host.gpu.nvml import NvmlGpu
from grader_service.host.gpu.steward import Steward
from grader_service.service.gate import DeviceGate
from grader_service.service.intake import IntakeDeps, receive_all
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.runner import run_next
from grader_service.settings import Settings
from grader_service.signer.signatures import Signer
from grader_service.store import devices

ROOT = Path(__file__).resolve().parents[1]
BAD_KERNEL = '''
import ctypes
import torch
torch.zeros(1, device="cuda")
cuda = ctypes.CDLL("libcuda.so.1")
ptx = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry k()
{
  .reg .u64 %a;
  .reg .u32 %b;
  mov.u64 %a, 4096;
  mov.u32 %b, 1;
  st.global.u32 [%a], %b;
  ret;
}
"""
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuModuleLoadData(ctypes.byref(module), ptx) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k") == 0
cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
torch.cuda.synchronize()
'''


def main() -> int:
    """Prints one block of facts for each step; 1 when the GPU did not come back."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        settings = Settings(state_dir=Path(folder))
        gpu = wiring.chosen_gpu(settings)
        assert gpu is not None, "no GPU on this host"
        monitor = NvmlGpu(gpu.uuid)
        print("snapshot:", monitor.snapshot())
        store = wiring.ready_store(settings)
        reasons: list[str] = []

        def quarantine(reason: str) -> None:
            reasons.append(reason)
            devices.quarantine(store, gpu.uuid, reason, "bench")

        gate = DeviceGate(store, gpu.uuid, "bench", gpu.model, Steward(monitor, quarantine))
        registry, signer = Registry(), Signer.from_folder(settings.key_dir)
        intake = IntakeDeps(store, wiring.open_artifacts(settings), registry, signer)
        runner = wiring.runner_deps(settings, store, gpu, "bench/gpu", gate)
        judge = JudgeDeps(store, registry, signer, "bench/judge")
        reference = (ROOT / "examples" / "reference_submission.ipynb").read_bytes()
        for name, filename, data, steps in (
            ("reference", "s.ipynb", reference, []),
            ("bad kernel", "s.py", BAD_KERNEL.encode(), ["pipeline", "reflection"]),
            ("reference again", "s.ipynb", reference, ["baseline", "pipeline"]),
        ):
            message = {
                "submission_id": f"gpu:{name.replace(' ', '-')}",
                "lab": "dali-pipelines",
                "artifact": {"filename": filename, "inline": base64.b64encode(data).decode()},
                "steps": steps,
            }
            started = time.monotonic()
            taken = receive_all(intake, [(message, None)], "live")[0]
            end = run_next(runner)
            verdict = judge_next(judge)
            print(f"\n{name}: {taken.kind}, run {end.value}, {time.monotonic() - started:.1f} s")
            if verdict is not None:
                health = (verdict.provenance.gpu or {}).get("health") if verdict.provenance else None
                print(f"  {verdict.status.value} {verdict.mode.value} {verdict.score}, health {json.dumps(health)}")
                for check in verdict.checks:
                    print(f"  {check.id}: {check.outcome.value} {check.code}: {check.feedback[:160]}")
        print("\nquarantined:", reasons or "no", [device.state for device in devices.devices(store)])
        print("snapshot:", monitor.snapshot())

        devices.quarantine(store, gpu.uuid, "by hand, to see a canary", "bench")
        canary = wiring.canary(settings.model_copy(update={"canary_minutes": 0.01}), runner, monitor)
        assert canary is not None
        time.sleep(1)
        started = time.monotonic()
        tried = canary.look()
        (device,) = devices.devices(store)
        print(f"\ncanary: tried {tried}, {time.monotonic() - started:.1f} s, then {device.state} {device.reason or ''}")
        print("snapshot:", monitor.snapshot())
        return int(device.state != devices.READY)


if __name__ == "__main__":
    sys.exit(main())
