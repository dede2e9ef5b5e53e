"""What it costs to try a graph out before it is timed, beside what the same graph takes to deliver as many images.

    python bench/graph_experiments.py [--device cuda] [--repeats 5] [--folder JPEGS]

Graphs in batches of 64: the lab page's own, and others with more to find out. As in a grading, the graph that will be
timed is there meanwhile. `ratio` is the time of the experiments divided by the time in which that one, built anew,
delivered its first batch.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from nvidia.dali import fn, pipeline_def, types

from grader_service.held_out.plan import new_seed, plan_shard
from grader_service.held_out.shards import PendingShard
from sandbox.guest.graph import edit, model
from sandbox.guest.trusted.batches import build
from sandbox.guest.trusted.children import WithoutGpu
from sandbox.guest.trusted.experiments import examine

BATCH = 64
_IMAGES = 256


def _read() -> Any:
    return fn.readers.file(files=["/any.jpg"], random_shuffle=True, name="Reader")[0]


def _whole(device: str) -> Any:
    return fn.decoders.image(_read(), device="mixed" if device == "cuda" else "cpu")


def _normal(images: Any, **options: Any) -> Any:
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[123.7, 116.3, 103.5], std=[58.4, 57.1, 57.4], **options
    )


def plain_resize(device: str) -> Any:
    """Whole images at 224 pixels."""
    return fn.resize(_whole(device), size=(224, 224))


def lab_page(device: str) -> Any:
    """The lab page's own chain."""
    images = fn.random_resized_crop(fn.resize(_whole(device), resize_shorter=256), size=(224, 224))
    return _normal(images, mirror=fn.random.coin_flip())


def decoder_crop(device: str) -> Any:
    """Windows that the decoder cuts out."""
    encoded = _read()
    images = fn.decoders.image_random_crop(encoded, device="mixed" if device == "cuda" else "cpu")
    return fn.resize(images, size=(224, 224))


def augmented(device: str) -> Any:
    """Turned, blurred and coloured."""
    images = fn.rotate(plain_resize(device), angle=fn.random.uniform(range=[-15.0, 15.0]), keep_size=True)
    images = fn.color_twist(images, hue=fn.random.uniform(range=[-20.0, 20.0]))
    return _normal(fn.gaussian_blur(images, window_size=5))


def mixed_up(device: str) -> Any:
    """Each image with a third of another one."""
    images = fn.cast(plain_resize(device), dtype=types.FLOAT)
    return images * 0.67 + fn.permute_batch(images, indices=fn.batch_permutation()) * 0.33


def timed(
    definition: Callable[[str], Any], device: str, files: list[str], threads: int, cpu: WithoutGpu
) -> tuple[float, float, str]:
    """Seconds of the experiments and of one batch, and what was found."""
    on_gpu = device == "cuda"
    pipeline = pipeline_def(definition)(device, batch_size=BATCH, num_threads=threads, device_id=0 if on_gpu else None)
    graph = model.read(pipeline.serialize())
    edit.repoint(graph, files, [0] * len(files))
    edit.restrain(graph, threads)
    started = time.monotonic()
    to_be_timed = build(graph)
    to_be_timed.run()
    batch_s = time.monotonic() - started
    found = cpu.call(examine, graph, 0, files, device, threads)
    del to_be_timed  # until here: nvJPEG asks the GPU for a second what it can do, wherever no other decoder lives
    words = (
        [found["doubt"]]
        if found["doubt"]
        else [f"{found[name]}/{found['samples']} {name}" for name in ("alike", "own")]
    )
    if "on_gpu" in found:
        words.append(f"{found['on_gpu']}/{found['samples']} on_gpu")
    return found["seconds"], batch_s, ", ".join(words)


def main() -> None:
    """Prints one line for each graph."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="Folder with JPEG files; drawn ones if absent.")
    options = parser.parse_args()
    cpu = WithoutGpu()
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder
        if folder is None:
            folder = Path(made)
            PendingShard(plan_shard(new_seed(), (), _IMAGES), folder).names()
        files = sorted(map(str, folder.rglob("*.jpg")))
        print(f"{'graph':14} {'experiments, s (range)':>26} {'one batch, s':>13} {'ratio':>6}  found")
        for definition in (plain_resize, lab_page, decoder_crop, augmented, mixed_up):
            runs = [timed(definition, options.device, files, options.threads, cpu) for _ in range(options.repeats)]
            seconds, batches = [run[0] for run in runs], [run[1] for run in runs]
            ratio = median(one / other for one, other in zip(seconds, batches, strict=True))
            told = f"{median(seconds):.2f} ({min(seconds):.2f}–{max(seconds):.2f})"
            print(
                f"{definition.__name__:14} {told:>26} {median(batches):>13.2f} {ratio:>6.1f}  {runs[-1][2]}", flush=True
            )


if __name__ == "__main__":
    main()
