"""On a GPU host: submissions that hurt the GPU or its host, each followed by a look at what is left of it.

    python bench/gpu_containment.py [--only X04 …] [--json FILE]

X04 takes all memory of the GPU, in a helper that outlives its parent; X05 starts a kernel that does not end; X12 asks
the driver for what only an administrator may have; N05 looks for what an earlier pod left in the GPU's memory. After
each one the reference's first two steps are graded: they must pass, on a GPU whose memory is as free as before.
(X06, an illegal access, is in `gpu_service.py`.)
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from checks.registry import Registry
from grader_service.host.facts import Gpu, find_gpus
from grader_service.host.gpu.nvml import NvmlGpu
from grader_service.host.sandboxes import open_runner
from grader_service.ingest.artifact import artifact_at
from grader_service.labs.catalogue import load_lab
from grader_service.model.submission import Submission
from grader_service.run.progress import Silent
from grader_service.service.local import Graded, GradeDeps, grade
from grader_service.settings import Settings
from grader_service.signer.signatures import Signer
from sandbox.api import SandboxRunner

ROOT = Path(__file__).resolve().parents[1]
LEARNER_S = 40
SIGNER = Signer.from_folder(Path(tempfile.mkdtemp(prefix="keys")))
HOG = '''
import subprocess, sys, time
code = """
import time, torch
kept = []
for size in (1 << 33, 1 << 30, 1 << 26, 1 << 20):
    try:
        while True:
            kept.append(torch.empty(size, dtype=torch.uint8, device='cuda'))
    except torch.OutOfMemoryError:
        pass
print('RESULT', sum(part.numel() for part in kept) >> 20, 'MiB held', flush=True)
time.sleep(10000)
"""
subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
time.sleep(20)
'''
ENDLESS = """
import torch
print("RESULT a kernel of years", flush=True)
torch.cuda._sleep(1 << 62)
torch.cuda.synchronize()
"""
CONFIGURE = """
import ctypes, os, shutil, subprocess
print("RESULT nvidia-smi:", shutil.which("nvidia-smi"))
try:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
except OSError as error:
    print("RESULT no NVML:", str(error)[:80])
else:
    print("RESULT init", nvml.nvmlInit_v2())
    device = ctypes.c_void_p()
    print("RESULT handle", nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
    print("RESULT compute mode", nvml.nvmlDeviceSetComputeMode(device, 3))
    print("RESULT persistence", nvml.nvmlDeviceSetPersistenceMode(device, 1))
    print("RESULT power limit", nvml.nvmlDeviceSetPowerManagementLimit(device, 200000))
    print("RESULT clocks", nvml.nvmlDeviceSetGpuLockedClocks(device, 300, 300))
mps = shutil.which("nvidia-cuda-mps-control")
print("RESULT MPS control:", mps)
for node in sorted(os.listdir("/dev")):
    if node.startswith("nvidia"):
        print("RESULT node", node, oct(os.stat("/dev/" + node).st_mode)[-3:])
"""
MARK = """
import torch
held = []
try:
    while True:
        held.append(torch.full((1 << 28,), 0x5EC12E7, dtype=torch.int32, device="cuda"))
except torch.OutOfMemoryError:
    pass
torch.cuda.synchronize()
print("RESULT left a mark in", len(held), "GiB")
"""
READ_BACK = """
import torch
found = looked = 0
held = []
try:
    while True:
        part = torch.empty(1 << 28, dtype=torch.int32, device="cuda")
        held.append(part)
        found += int((part == 0x5EC12E7).sum())
        looked += 1
except torch.OutOfMemoryError:
    pass
print("RESULT marks found:", found, "in", looked, "GiB")
"""
ATTACKS = {"X04": [HOG], "X05": [ENDLESS], "X12": [CONFIGURE], "N05": [MARK, READ_BACK]}


def main() -> int:
    """Prints one block of facts for each attack; 1 when something of it outlived it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(ATTACKS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    gpu = find_gpus()[0]
    monitor = NvmlGpu(gpu.uuid)
    told, bad = {}, 0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        settings = Settings(state_dir=Path(folder))
        runner = open_runner("docker", load_lab("dali-pipelines", Registry()).image, settings, gpu)
        before = monitor.snapshot()
        print("before:", before, flush=True)
        for name in options.only:
            lines = []
            for source in ATTACKS[name]:
                path = Path(folder, "submission.py")
                path.write_text(source)
                started = time.monotonic()
                done = _grade(path, runner, gpu, LEARNER_S)
                lines += [f"{done.verdict.status.value} after {time.monotonic() - started:.1f} s", *_said(done)]
            after = monitor.snapshot()
            reference = _grade(ROOT / "examples" / "reference_submission.ipynb", runner, gpu, None)
            lines += [f"after: {after}", f"then the reference: {reference.verdict.status.value}"]
            bad += reference.verdict.status.value != "passed"
            told[name] = lines
            print(f"\n{name}", *lines, sep="\n  ", flush=True)
        print("\nXids:", monitor.drain_xids() or "none", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(told, indent=1))
    return 1 if bad else 0


def _grade(path: Path, runner: SandboxRunner, gpu: Gpu, learner_s: int | None) -> Graded:
    """The pipeline and baseline steps of one submission."""
    registry = Registry()
    lab = load_lab("dali-pipelines", registry)
    if learner_s is not None:
        lab = lab.model_copy(update={"limits": lab.limits.model_copy(update={"learner_timeout_s": learner_s})})
    artifact = artifact_at(path)
    submission = Submission(
        submission_id="bench:1",
        lab=lab.id,
        filename=path.name,
        sha256=artifact.sha256,
        size_bytes=artifact.size_bytes,
        steps=("baseline", "pipeline"),
    )
    deps = GradeDeps(lab, registry, runner, "cuda", SIGNER, gpu)
    return grade(submission, artifact, deps, Silent())


def _said(done: Graded) -> list[str]:
    """What each check answered, how pods ended, and the lines that the attack printed."""
    lines = [f"{check.id}: {check.code}: {check.feedback[:200]}" for check in done.verdict.checks]
    if done.failure is not None:
        lines.append(f"our failure: {done.failure}")
    if done.evidence is not None:
        for pod in done.evidence.run.pods:
            lines.append(f"{pod.role.value}: {pod.ending.value} after {pod.wall_s:.1f} s {pod.detail[:120]}")
            lines += [line for line in pod.log_tail.splitlines() if line.startswith("RESULT")]
    return lines


if __name__ == "__main__":
    sys.exit(main())
