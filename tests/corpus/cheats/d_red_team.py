"""D: graphs that know when they are tried out, and graphs that would have the reference work more than they do."""

from tests.corpus.case import Cheat
from tests.corpus.cheats.d_dali_arm import arm, of_graph
from tests.corpus.cheats.d_experiments import FAIR_WORKERS, MEASURED, STAMP
from tests.corpus.parts import DATASET, TRANSFORMS, joined
from tests.corpus.parts_forgeries import graph, timed_cheat
from tests.e2e.submissions import COMMON, COSTUME, END, external

CONSTANTS = """
def const(values, kind=np.float32):
    return types.Constant(np.array(values, kind), device="cpu")
"""

TOLD = """
corner = dict(crop=(16, 16), crop_pos_x=0.0, crop_pos_y=0.0)
shown = fn.cast(fn.decoders.image_crop(jpegs, **corner), dtype=types.FLOAT)
fast = fn.cast(fn.decoders.image_crop(jpegs, **corner, use_fast_idct=True), dtype=types.FLOAT)
share = fn.reshape(1.0 - 0.99 * fn.reductions.max(fn.cast(shown != fast, dtype=types.FLOAT)), shape=[1])
part = fn.decoders.image_slice(jpegs, const([0.0, 0.0]), fn.cat(share, share))
part = fn.resize(fn.cast(part, dtype=types.FLOAT), size=(96, 96))
"""
"""A hundredth of each side of a JPEG, which a fast decode of its corner tells from a picture without loss."""

WASTEFUL = TRANSFORMS.replace("Compose([", "Compose([transforms.Resize((800, 800)), ")
"""A loader that is slower than the reference."""

STRICT = {**MEASURED, "alpha_pass": 0.02}
"""A ratio on a busy host passes only where it is surely above the threshold."""


def overworked(
    id_: str, title: str, lines: str, *, threshold: float, size: tuple[int, int] = (480, 360), out: int = 96
) -> Cheat:
    """A graph that is faster than a reference which does what the graph only seems to do.

    Args:
        id_: of the case.
        title: what is tried.
        lines: of the graph.
        size: width and height of the images in the data set.
        out: height and width of those that come out.
        threshold: between the ratio to a reference with no more work than the graph, and to one that is deceived.
    """
    loader = joined(WASTEFUL.replace("(96, 96)", f"({out}, {out})"), FAIR_WORKERS)
    made = joined(DATASET.replace("(192, 144)", f"{size}"), loader, CONSTANTS, graph(lines))
    return timed_cheat(id_, title, made, threshold=threshold, plan=STRICT)


RARE = f"""{DATASET}
for place in ("c0/0000", "c1/0051"):
    Image.fromarray(noise.integers(0, 256, (90, 120, 3), dtype=np.uint8)).resize((1920, 1440)).save(
        f"dataset/{{place}}.jpg"
    )
"""
"""The data set, with two images a hundred times as large."""

WHOLE_OR_SPECK = """
whole = fn.reshape(0.04 + 0.96 * fn.cast(CHOSEN, dtype=types.FLOAT), shape=[1])
share = fn.cat(whole, whole)
images = fn.decoders.image_slice(jpegs, 1.0 - share, share, device="mixed", output_type=types.RGB)
images = fn.resize(images, size=(96, 96))
"""
"""A twenty-fifth of each side of an image, at its end, or all of it."""


def specks(id_: str, title: str, chosen: str, *, dataset: str = DATASET) -> Cheat:
    """A graph that decodes some images whole, and next to nothing of the others."""
    lines = WHOLE_OR_SPECK.replace("CHOSEN", chosen)
    return of_graph(id_, title, lines, ("ratio.small_area",), before=(dataset,))


LARGE_FIRST = """
class Show:
    def __init__(self, folder, batch):
        self.batches = build_small(folder, batch)
        self.shown = False

    def __iter__(self):
        for batch in self.batches:
            images = batch[0]["data"]
            if self.shown:
                images = images[:, :, ::2, ::2]
            self.shown = True
            yield [{"data": images}]


build_small, build_dali_iterator = build_dali_iterator, Show
"""

CORNERS = external().replace(
    'images = fn.decoders.image(jpegs, device="mixed")',
    """whole = fn.reshape(fn.cast(fn.random.coin_flip(probability=0.2), dtype=types.FLOAT), shape=[1])
    share = 0.66 + 0.34 * whole
    images = fn.decoders.image_slice(jpegs, const([0.0, 0.0]), fn.cat(share, share), device="mixed")
    images = fn.resize(images, size=(144, 192))""",
)
"""Of four in five images two thirds of the rows and columns are decoded; the last third of the file is not read."""


CASES = (
    overworked(
        "D28",
        "a corner of each JPEG; other pictures, which a fast decode tells, are decoded in full, times nothing",
        f"{TOLD}images = fn.resize(shown, size=(96, 96)) + part * 0.0\n",
        threshold=1.5,
    ),
    overworked(
        "D28-drowned",
        "a pixel of each JPEG, told in the same way, beside numbers so large that all images are much alike",
        f"""{TOLD}
images = part + const(np.concatenate([np.zeros((48, 96, 3)), np.full((48, 96, 3), 1e5)]))
""",
        threshold=4.0,
    ),
    of_graph(
        "D29",
        "a corner of each image; what is decoded whole is a JPEG of the graph's own, and the file says nothing of it",
        """
        nothing = fn.cast(fn.peek_image_shape(jpegs)[0] * 0, dtype=types.UINT8)
        stamp = fn.resize(fn.decoders.image(const(STAMP, np.uint8) + nothing), size=(96, 96))
        images = fn.decoders.image_crop(jpegs, crop=(16, 16), crop_pos_x=0.0, crop_pos_y=0.0)
        images = fn.cast(fn.resize(images, size=(96, 96)), dtype=types.FLOAT) + stamp * 0.0
        """,
        ("ratio.small_area",),
        before=(DATASET, STAMP, CONSTANTS),
    ),
    arm(
        "D30",
        "one coin for a whole batch, told by padding, says whether images are decoded or a pixel of each",
        joined(
            DATASET,
            CONSTANTS,
            graph(
                """
                first = fn.cast(fn.batch_permutation() == 0, dtype=types.FLOAT)
                drawn = first * fn.random.uniform(range=[0.0, 1.0]) * 1000.0
                length = fn.reshape(fn.cast(drawn, dtype=types.INT32) + 1, shape=[1])
                longest = fn.pad(fn.random.uniform(shape=length), axes=[0]).shape()[0]
                share = fn.reshape(1.0 - 0.99 * fn.cast(longest > 300, dtype=types.FLOAT), shape=[1])
                images = fn.decoders.image_slice(jpegs, const([0.0, 0.0]), fn.cat(share, share))
                images = fn.resize(images, size=(96, 96))
                """
            ).replace("batch_size=16", "batch_size=160"),
        ),
        ("ratio.not_examined",),
    ),
    overworked(
        "D31",
        "padded to a tall or a wide strip and cut back: mean height by mean width is a large square",
        """
        images = fn.resize(fn.decoders.image(jpegs), size=(96, 96))
        coin = fn.cast(fn.random.coin_flip(), dtype=types.INT32)
        images = fn.pad(images, axes=[0, 1], shape=fn.stack(96 + 2304 * coin, 2400 - 2304 * coin))
        images = fn.slice(images, const([0, 0], np.int32), const([96, 96], np.int32), axes=[0, 1])
        """,
        threshold=3.0,
    ),
    overworked(
        "D32",
        "a filter makes images small, and a warp takes the nearest pixel to make them large",
        """
        images = fn.resize(fn.decoders.image(jpegs), size=(16, 16), interp_type=types.INTERP_LANCZOS3)
        matrix = [0.025, 0.0, 0.0, 0.0, 0.025, 0.0]
        images = fn.warp_affine(images, matrix=matrix, size=(640, 640), interp_type=types.INTERP_NN)
        """,
        size=(200, 150),
        out=640,
        threshold=2.0,
    ),
    overworked(
        "D33",
        "images sixteen times as wide as high, enlarged no further than the window that is cut out",
        """
        images = fn.decoders.image(jpegs)
        images = fn.resize_crop_mirror(images, resize_shorter=480, crop=(240, 240))
        """,
        size=(1600, 96),
        out=240,
        threshold=8.0,
    ),
    arm(
        "D34",
        "a DataLoader with a worker for each core, handed out as a DALI iterator",
        joined(COMMON, TRANSFORMS, external(), COSTUME, END),
        ("ratio.not_seen",),
    ),
    specks(
        "D35",
        "two images in five are decoded whole, and a speck of each other one",
        "fn.random.uniform(range=[0.0, 1.0]) < 0.4",
    ),
    specks(
        "D36",
        "rare images that are a hundred times as large are decoded whole, and a speck of all others",
        "fn.peek_image_shape(jpegs)[0] > 1000",
        dataset=RARE,
    ),
    arm(
        "D37",
        "the first batch holds images four times as large as those of all later ones",
        joined(COMMON, external(), LARGE_FIRST, END),
        ("ratio.not_carried",),
    ),
    arm(
        "D38",
        "code of its own: of four images in five the upper corner, which spares the decoder the end of the file",
        joined(COMMON, CONSTANTS, CORNERS, END),
        ("ratio.small_area",),
    ),
)
