"""Tries out every chain of the geometry matrix with GPU decoders: who is accused, and what it costs.

    python bench/gpu_graphs.py [--device cuda] [--lanes 6] [--only TEXT] [--telling]

The chains are those of tests/measure/geometry.py. Exit status 0 when none has a problem. With `--telling` they are the
graphs of tests/measure/graphs_of_devices.py, which decode less on a GPU; exit status 0 when each has one.

With several lanes the seconds are those of processes that share the GPU and the cores; `bench/graph_experiments.py`
measures one alone.
"""

import argparse
import collections
import functools
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grader_service.measure.acceptance import LEAST_SHARE
from grader_service.model.measurement import GraphProof
from sandbox.guest.trusted.children import WithoutGpu
from sandbox.guest.trusted.experiments import examine
from tests.measure.geometry import chains, examined, write_images
from tests.measure.graphs_of_devices import telling

_DECODER = {"cuda": "mixed", "cpu": "cpu"}
Images = list[tuple[str, tuple[int, int]]]


@functools.cache
def cpu() -> WithoutGpu:
    """A lane's process for the CPU."""
    return WithoutGpu()


def one(name: str, images: Images, device: str) -> tuple[str, GraphProof]:
    """A chain's name and proof."""
    graph = telling().get(name) or dict(chains(_DECODER[device]))[name]
    return name, examined(name, graph, images, device, functools.partial(cpu().call, examine))


def main() -> int:
    """Prints a line for each problem, and what was found as a whole."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--lanes", type=int, default=6)
    parser.add_argument("--only", default="", help="Chains whose name has this text.")
    parser.add_argument("--telling", action="store_true", help="Graphs that tell a GPU from a CPU.")
    options = parser.parse_args()
    names = [name for name in (telling() if options.telling else dict(chains())) if options.only in name]
    proofs: list[GraphProof] = []
    problems: collections.Counter[str] = collections.Counter()
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(options.lanes, mp_context=get_context("spawn"), initializer=cpu) as pool,
    ):
        images = write_images(Path(folder))
        for done in as_completed([pool.submit(one, name, images, options.device) for name in names]):
            name, proof = done.result()
            proofs.append(proof)
            if proof.problem is not None:
                problems[proof.problem] += 1
                print(f"{name}: {proof.problem}. {proof.note}", flush=True)
            if len(proofs) % 10 == 0:
                print(f"{len(proofs)} of {len(names)}, {time.monotonic() - started:.0f} s", flush=True)
    seconds = sorted(proof.seconds for proof in proofs)
    again = [proof for proof in proofs if proof.on_gpu is not None and proof.on_gpu < LEAST_SHARE * proof.samples]
    print(
        f"{len(proofs)} chains, {dict(problems) or 'no problems'}; {len(again)} were tried out on the GPU as well; "
        f"seconds each: median {median(seconds):.2f}, largest {seconds[-1]:.2f}; {time.monotonic() - started:.0f} s"
    )
    return 0 if problems.total() == (len(names) if options.telling else 0) else 1


if __name__ == "__main__":
    raise SystemExit(main())
