"""D: a DALI arm that delivers without decoding, decodes something else, or decodes less."""

from collections.abc import Sequence
from functools import partial

from tests.corpus.case import Cheat
from tests.corpus.cheats.c_clocks import SLOWLY
from tests.corpus.parts import DATASET, LOADER, SLOW_GRAPH, joined, slowed
from tests.corpus.parts_forgeries import CONTENT, forged, forged_cheat, graph, timed_cheat
from tests.e2e.submissions import COMMON

UNKNOWN = ("ratio.wrong_content", "ratio.replayed")
"""Images that are none of ours: their colours are nobody's, or by chance the same again."""

arm = partial(timed_cheat, threshold=CONTENT)
"""A forged DALI arm."""
forged_arm = partial(forged_cheat, threshold=CONTENT)
"""One that is a generator."""


def of_graph(
    id_: str,
    title: str,
    lines: str,
    codes: tuple[str, ...],
    *,
    before: Sequence[str] = (DATASET,),
    outputs: str = "",
    branches: bool = False,
) -> Cheat:
    """A graph that delivers less than it reads; `outputs` keeps a decoder whose images are not delivered."""
    made = graph(lines, branches=branches)
    if outputs:
        made = made.replace("return images, labels", f"return images, labels, {outputs}")
        made = made.replace('["data", "label"]', '["data", "label", "beside"]')
    return arm(id_, title, joined(*before, made), codes)


CASES = (
    forged_arm(
        "D01-ring",
        "a ring of two batches, decoded anew in every round",
        """
        while True:
            ring = [decoded(files(self.folder)[place : place + self.size]) for place in (0, self.size)]
            for _ in range(5):
                yield from ring
        """,
        codes=("ratio.replayed",),
    ),
    forged_arm(
        "D01-warm",
        "the batches of the warm-up, over and over",
        """
        if not ring:
            ring.extend(decoded(paths) for _, paths in zip(range(8), rounds(self.folder, self.size)))
        while True:
            yield from ring
        """,
        "ring = []\n",
        codes=("ratio.stale",),
    ),
    timed_cheat(
        "D02-graph",
        "a decoder cache that holds everything, before work that is slow",
        joined(
            DATASET,
            LOADER,
            SLOW_GRAPH.replace(
                "output_type=types.RGB",
                'output_type=types.RGB, cache_size=512, cache_type="threshold", cache_threshold=0',
            ),
        ),
    ),
    forged_arm(
        "D02-memory",
        "decoded images are kept by their path",
        """
        for paths in rounds(self.folder, self.size):
            for path in paths:
                name = os.path.basename(path)
                if name not in kept:
                    kept[name] = decoded([path])[0]
            yield torch.stack([kept[os.path.basename(path)] for path in paths])
        """,
        "kept = {}\n",
        codes=("ratio.stale",),
    ),
    forged_arm(
        "D03",
        "arrays of the learner's own files, decoded before",
        """
        arrays = np.load("decoded.npy", mmap_mode="r")
        while True:
            yield torch.from_numpy(arrays[np.random.permutation(100)[: self.size]])
        """,
        'np.save("decoded.npy", decoded(files(dataset_dir)).numpy())\n',
        codes=UNKNOWN,
    ),
    timed_cheat(
        "D04",
        "a prefetch queue of 24 batches, filled while the others have their turn",
        joined(DATASET, LOADER, slowed(192, 1.0).replace("device_id=0", "device_id=0, prefetch_queue_depth=12")),
        threshold=3.0,
        plan={"looks": (8,), "block_s": 0.0001},  # windows of two batches, of which the queue has many ready
    ),
    timed_cheat(
        "D05",
        "everything is decoded when the iterator is built",
        forged(
            """
            while True:
                yield from self.batches
            """,
            SLOWLY.replace("range(8)", "range(24)"),
        ).replace(
            "self.folder, self.size = folder, batch_size",
            "self.batches = [slowly(paths) for _, paths in zip(range(8), rounds(folder, batch_size))]",
        ),
        threshold=0.4,
    ),
    timed_cheat(
        "D06",
        "outputs of 64 pixels against a loader's of 1280",
        joined(
            DATASET,
            LOADER.replace("(96, 96)", "(1280, 1280)").replace("batch_size=16", "batch_size=4"),
            SLOW_GRAPH.replace("(96, 96)", "(64, 64)"),
        ),
    ),
    of_graph(
        "D07",
        "noise in a colour that the label gives, beside a decoder that nobody looks at",
        """
        beside = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
        noise = fn.random.uniform(range=[-40.0, 40.0], shape=[48, 48, 3], device="gpu")
        images = fn.resize(noise, size=(96, 96)) + fn.cast(labels.gpu() * 37 % 200 + 30, dtype=types.FLOAT)
        """,
        ("ratio.independent",),
        outputs="fn.shapes(beside)",
    ),
    of_graph(
        "D08-graph",
        "one image of each batch, sixteen times",
        """
        images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
        images = fn.permute_batch(fn.resize(images, size=(96, 96)), indices=[0] * 16)
        """,
        ("ratio.unclear", "ratio.independent"),
    ),
    forged_arm(
        "D08-filled",
        "batches that are filled up with images that are in them already",
        """
        for paths in rounds(self.folder, self.size):
            yield decoded(paths[:4]).repeat(4, 1, 1, 1)
        """,
        codes=("ratio.replayed",),
    ),
    arm(
        "D09",
        "tiny files of the learner's own, whatever folder is asked for",
        joined(
            forged(
                """
                for paths in rounds("tiny", self.size):
                    yield decoded(paths)
                """
            ),
            """
            os.makedirs("tiny")
            for number in range(128):
                Image.fromarray(noise.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(f"tiny/{number:04d}.jpg")
            """,
        ),
        UNKNOWN,
    ),
    arm(
        "D16",
        "a fast decoder in threads, and no DALI at all",
        joined(
            COMMON,
            """
            import torch
            from concurrent.futures import ThreadPoolExecutor
            from torchvision.io import ImageReadMode, decode_jpeg, read_file

            pool = ThreadPoolExecutor()


            def image(path):
                return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)


            def build_dali_iterator(folder, batch_size):
                while True:
                    paths = files(folder)
                    for place in range(0, len(paths) - batch_size + 1, batch_size):
                        yield torch.stack(list(pool.map(image, paths[place : place + batch_size]))).cuda()


            dali_iter = build_dali_iterator(dataset_dir, 16)
            first_batch = next(dali_iter)
            """,
        ),
        ("ratio.no_pipeline",),
    ),
    forged_arm(
        "D17",
        "an orphan in a session of its own decodes while the pod's turn is over",
        """
        place, asked = os.path.abspath("ready"), os.path.abspath("asked")
        os.makedirs(place)
        orphan(self.folder, self.size, place, asked)
        for number in itertools.count():
            open(asked, "w").close()
            last_s = time.monotonic() + 5
            while not os.path.exists(f"{place}/{number}.npy"):
                if time.monotonic() > last_s:
                    raise TimeoutError("no batch is ready")
                time.sleep(0.002)
            batch = torch.from_numpy(np.load(f"{place}/{number}.npy"))
            os.remove(f"{place}/{number}.npy")
            os.remove(asked)
            yield batch
        """,
        """
        import contextlib
        import itertools
        import time


        def orphan(folder, size, place, asked):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    number, window = 0, len(files(folder)) // size
                    wanted = 2 * window + 3  # what builds the arm and warms it up
                    while True:
                        while number < wanted:
                            with contextlib.suppress(FileNotFoundError):  # the folder is being exchanged
                                for paths in itertools.islice(one_round(folder, size), wanted - number):
                                    np.save(f"{place}/{number}.part.npy", decoded(paths).numpy())
                                    os.rename(f"{place}/{number}.part.npy", f"{place}/{number}.npy")
                                    number += 1
                        idle = 0
                        while idle < 20:  # a tenth of a second after the window's last batch, while files are drawn
                            time.sleep(0.005)
                            idle = 0 if os.path.exists(asked) or os.listdir(place) else idle + 1
                        wanted += window
                os._exit(0)
            os.wait()
        """,
        photos=(832, 624),
        codes=("ratio.not_carried",),
        plan={"block_s": 0.2, "looks": (4,)},
    ),
)
