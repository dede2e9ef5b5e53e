"""The rate of a graph in the clean room against the same graph run live by its author's script, on the same images.

    python bench/clean_room.py [--device cuda] [--sandbox docker] [--blocks 12] [--seconds 1.0] [--images 512]

Both sides draw from the same held-out files, one after the other, there and back again, timed by this process between
two lines or messages. Prints the ratio clean room / live: geometric mean over blocks and a 95 % interval; the target is
within 5 % of 1. The author's script draws through `DALIGenericIterator`, as the lab's page does.
"""

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scipy.stats import t

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grader_service import wiring
from grader_service.held_out.plan import new_seed, plan_shard
from grader_service.held_out.shards import PendingShard
from grader_service.host.facts import total_memory_mib, usable_cpus
from grader_service.measure import clean_room
from grader_service.measure.arms import ArmLost
from grader_service.run import trusted_pod
from grader_service.run.learner import Found
from grader_service.settings import Settings
from sandbox.api import PodRole, PodSpec, SpaceLimits
from tests.factories import a_discovery, a_pipeline

AUTHOR = """
import os
import sys
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator
root, graph, device, cpus = sys.argv[1], sys.argv[2], sys.argv[3], [int(cpu) for cpu in sys.argv[4].split(",")]
os.sched_setaffinity(0, cpus)  # the cores of the clean room, no others
gpu = device == "cuda"

@pipeline_def(batch_size=32, num_threads=len(cpus), device_id=0 if gpu else None, seed=1)
def author():
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
    images = fn.decoders.image_random_crop(jpegs, device="mixed" if gpu else "cpu", output_type=types.RGB)
    images = fn.resize(images, size=(224, 224))
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip(probability=0.5),
        mean=[123.7, 116.3, 103.5], std=[58.4, 57.1, 57.4])
    return images, labels

pipe = author()
pipe.build()
open(graph, "wb").write(pipe.serialize())
batches = iter(DALIGenericIterator(pipe, ["data", "label"], auto_reset=True))

def draw(count):
    for _ in range(count):
        next(batches)
    if gpu:
        import torch
        torch.cuda.synchronize()

draw(1)
print("ready", flush=True)
for line in sys.stdin:
    discard, count = map(int, line.split())
    draw(discard)
    print("mark", flush=True)
    draw(count)
    print("done", flush=True)
"""


class Live:
    """The author's script in a process of its own."""

    def __init__(self, root: Path, graph: Path, device: str, cpus: tuple[int, ...]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", AUTHOR, str(root), str(graph), device, ",".join(map(str, cpus))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._expect("ready")

    def rate(self, batches: int) -> float:
        """Images per second of one window."""
        self._process.stdin.write(f"8 {batches}\n")
        self._process.stdin.flush()
        self._expect("mark")
        started = time.monotonic()
        self._expect("done")
        return 32 * batches / (time.monotonic() - started)

    def end(self) -> None:
        """Ends it."""
        self._process.stdin.close()
        self._process.wait(30)

    def _expect(self, word: str) -> None:
        said = self._process.stdout.readline().strip()
        if said != word:
            raise SystemExit(f"the author's script said {said!r} instead of {word!r}")


def main() -> None:
    """Interleaves the windows and prints the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--sandbox", default="process", choices=["process", "docker"])
    options = parser.parse_args()
    cpus = usable_cpus(8)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        settings = Settings(state_dir=Path(folder), sandbox=options.sandbox)
        runner = wiring.open_sandbox(settings, wiring.chosen_gpu(settings) if options.device == "cuda" else None)
        with runner.open_run("bench", SpaceLimits(1024, 100_000, 512)) as space:
            names = PendingShard(plan_shard(new_seed(), (), options.images), space.shards_dir).names()
            files = [f"{space.paths.shards}/{name}" for name in names]
            live = Live(space.shards_dir, Path(folder, "graph"), options.device, cpus)
            data = Path(folder, "graph").read_bytes()
            pod = space.start(
                PodSpec(
                    role=PodRole.CLEAN_ROOM,
                    program="trusted.clean_room",
                    memory_mib=min(8192, total_memory_mib() // 2),
                    pids=512,
                    cpus=cpus,
                    shards=True,
                    gpu=options.device == "cuda",
                )
            )
            trusted_pod.await_ready(pod)
            found = Found(a_discovery(pipelines=(a_pipeline(graph=0),)), (data,))
            carried = clean_room.carry(pod, found, files, len(cpus), options.device, experiments=False)
            if not isinstance(carried, clean_room.Carried):
                raise SystemExit(f"not carried: {carried.problem} {carried.problem_text}")
            logs = compare(carried.arm, live, options.blocks, options.seconds)
            live.end()
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    half = float(t.ppf(0.975, len(logs) - 1)) * error
    low, high = math.exp(mean - half), math.exp(mean + half)
    print(f"clean room / live: {math.exp(mean):.3f} (95 % interval {low:.3f} to {high:.3f}), {len(logs)} blocks")


def compare(arm: clean_room.DaliArm, live: Live, blocks: int, seconds: float) -> list[float]:
    """ln(clean room / live) of each block."""

    def room(batches: int) -> float:
        window = arm.window(batches, timeout_s=120.0)
        if isinstance(window, ArmLost):
            raise SystemExit(f"the clean room lost the graph: {window.reason}")
        return window.images_per_s

    room(8), live.rate(8)
    batches = max(8, int(room(32) * seconds / 32))
    live.rate(batches)
    logs = []
    for number in range(blocks):
        sides = [room, live.rate] if number % 2 == 0 else [live.rate, room]
        rates = {side: side(batches) for side in sides}
        logs.append(math.log(rates[room] / rates[live.rate]))
        print(f"block {number + 1}: clean room {rates[room]:,.0f}/s  live {rates[live.rate]:,.0f}/s", flush=True)
    return logs


if __name__ == "__main__":
    main()
