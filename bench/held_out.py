"""Speed of making held-out images, and how far honest decoders lie from every forgery.

    python bench/held_out.py                               images/s per core, beside Pillow's encoder alone
    python bench/held_out.py --threads                     seconds for 512 images by 1 to 16 threads
    python bench/held_out.py --calibrate [--images 64]     table of textures: honest loaders and forgeries
    python bench/held_out.py --calibrate --device cuda     with DALI's nvJPEG decoders: hybrid, hardware, host

The table's columns are the mean, least and greatest texture of the audited images, the least of the worst blocks, the
kinds that audits gave, how many of the images were named by colour, and milliseconds per audit.
"""

import argparse
import io
import itertools
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grader_service.held_out import shards
from grader_service.held_out.audit import audit_image
from grader_service.held_out.drawing import QUALITY, draw_jpeg
from grader_service.held_out.identity import Identifier
from grader_service.held_out.plan import ShardPlan, marks, new_seed, plan_shard
from grader_service.held_out.reference import decode
from tests.held_out import forgeries, loaders
from tests.held_out.factories import deliver

_SETTINGS = (((500, 375), False), ((500, 375), True), ((320, 240), True), ((1600, 1200), True))


def main() -> None:
    """Prints what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--skip-forgeries", action="store_true")
    options = parser.parse_args()
    if options.calibrate:
        calibrate(options.images, options.device, forged=not options.skip_forgeries)
    elif options.threads:
        by_threads()
    else:
        speed(options.images)


def by_threads() -> None:
    """A whole shard, written by more and more threads; five rounds, so that a busy host slows all of them."""
    taken: dict[int, list[float]] = {1: [], 2: [], 3: [], 4: [], 6: [], 16: []}
    for _ in range(5):
        for threads, seconds in taken.items():
            with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
                plan = plan_shard(new_seed(), (), 512)
                shards.THREADS = threads
                started = time.perf_counter()
                shards.PendingShard(plan, Path(folder)).names()
                seconds.append(time.perf_counter() - started)
    for threads, seconds in taken.items():
        print(f"{threads:>3} threads {statistics.median(seconds):6.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")


def speed(images: int) -> None:
    """Alternates drawing with plain encoding of the same pixels, so that a busy host slows both."""
    for size in ((500, 375), (1600, 1200), (96, 96)):
        plan = ShardPlan(new_seed(), (size,) * images)
        colours = marks(plan)
        drawn, plain, bits = [], [], 0
        for index in range(images):
            started = time.perf_counter()
            jpeg = draw_jpeg(plan.seed, index, size, colours[index])
            drawn.append(time.perf_counter() - started)
            bits += len(jpeg) * 8
            with Image.open(io.BytesIO(jpeg)) as image:
                image.draft("YCbCr", image.size)
                image.load()
                started = time.perf_counter()
                image.save(io.BytesIO(), "JPEG", quality=QUALITY, subsampling="4:2:0")
                plain.append(time.perf_counter() - started)
        made, encoded = statistics.median(drawn), statistics.median(plain)
        print(
            f"{size[0]:>5} × {size[1]:<5} {1 / made:7.0f} images/s per core; encoder alone {1 / encoded:7.0f}; "
            f"drawing takes {made / encoded:.2f} × as long; {bits / images / size[0] / size[1]:.2f} bits per pixel"
        )


def calibrate(images: int, device: str, *, forged: bool) -> None:
    """One table per size of source."""
    for size, crops in _SETTINGS:
        plan = ShardPlan(new_seed(), (size,) * (images + 1))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            paths = [folder / file for file in shards.PendingShard(plan, folder).names()]
            files = [path.read_bytes() for path in paths]
            print(f"\n{size[0]} × {size[1]} to 224 × 224, {'random crops of 8 to 100 %' if crops else 'no crop'}")
            print(f"{'':34} {'mean':>6} {'min':>6} {'max':>6} {'block':>6} {'n':>4} {'named':>6} {'ms':>5}  kinds")
            for title, delivered in _loaders(paths[:images], device, crops=crops):
                _row(title, plan, files, delivered)
            if forged:
                makers = itertools.chain(forgeries.HONEST.items(), forgeries.FORGED.items())
                for title, maker in makers:
                    _row(f"Pillow: {title}", plan, files, list(deliver(maker, files, size, crops=crops)))


def _loaders(paths: list[Path], device: str, *, crops: bool) -> Iterator[tuple[str, list[np.ndarray]]]:
    for title, load in loaders.known(device, crops=crops).items():
        yield title, load(paths)


def _row(title: str, plan: ShardPlan, files: list[bytes], delivered: list[np.ndarray]) -> None:
    means = np.array([_channel_means(image) for image in delivered])
    found = Identifier(plan).identify_means(means)
    named = float((found.ids == np.arange(len(delivered))).mean())
    audits, spent = [], 0.0
    for image, jpeg in zip(delivered, files, strict=False):
        started = time.perf_counter()
        audits.append(audit_image(image, decode(jpeg)))
        spent += time.perf_counter() - started
    textures = [audit.texture for audit in audits]
    kinds = ", ".join(f"{kind.value} {count}" for kind, count in Counter(audit.kind for audit in audits).most_common())
    print(
        f"{title:34} {statistics.fmean(textures):6.2f} {min(textures):6.2f} {max(textures):6.2f} "
        f"{min(audit.worst_block for audit in audits):6.2f} {len(audits):4} {named:6.1%} "
        f"{1000 * spent / len(audits):5.0f}  {kinds}",
        flush=True,
    )


def _channel_means(image: np.ndarray) -> np.ndarray:
    planes = image.astype(np.float32)
    return planes.mean(axis=(1, 2)) if image.shape[0] == 3 else planes.mean(axis=(0, 1))


if __name__ == "__main__":
    main()
