"""D: graphs whose pixels look like work: stamps for images, windows that are misread, idle augmentations, branches."""

from tests.corpus.case import Cheat
from tests.corpus.cheats.d_dali_arm import of_graph
from tests.corpus.parts import DATASET, TRANSFORMS, joined
from tests.corpus.parts_forgeries import graph, timed_cheat

LESS = ("ratio.independent", "ratio.small_area", "ratio.wrong_content")
"""Right answers where outputs do not hang on the files, or on a small part of them."""
BRANCHED = ("ratio.not_carried", "ratio.independent", "ratio.wrong_content")
"""Right answers where a graph decides which files it decodes: such a graph may be refused as it stands."""

STAMP = """
import io

made = io.BytesIO()
Image.fromarray(noise.integers(90, 160, (8, 8, 3), dtype=np.uint8)).save(made, "JPEG")
STAMP = np.frombuffer(made.getvalue(), np.uint8)
"""
"""The bytes of a JPEG of 8 by 8 pixels."""

STAMPED = """
stamp = fn.decoders.image(types.Constant(STAMP, device="cpu"), device="mixed", output_type=types.RGB)
stamp = stamp + fn.random.uniform(range=[-90.0, 90.0], shape=[3], device="gpu")
"""
"""It, decoded anew for each image, in a colour of chance: floats."""

LENGTHENED = """
images = fn.resize(images, size=(512, 512))
images = fn.resize(images, size=(224, 224))
"""
"""Work that the reference is not asked to do, so that a graph is slower than a fair loader."""


def of_lines(id_: str, title: str, lines: str, codes: tuple[str, ...] = LESS, *, branches: bool = False) -> Cheat:
    """A graph that is to pass for one that decodes; fast enough it is."""
    return of_graph(id_, title, lines, codes, before=(DATASET, STAMP), branches=branches)


def stamp_unless(id_: str, title: str, asked: str) -> Cheat:
    """Decodes in full where that holds, and puts the stamp in the place of everything else."""
    lines = (
        f"{STAMPED}stamp = fn.resize(stamp, size=(96, 96))\n"
        f"if {asked}:\n"
        '    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)\n'
        "    images = fn.resize(fn.cast(images, dtype=types.FLOAT), size=(96, 96))\n"
        "else:\n"
        "    images = stamp\n"
    )
    return of_lines(id_, title, lines, BRANCHED, branches=True)


FAIR_WORKERS = """
cpus = len(os.sched_getaffinity(0))
images = datasets.ImageFolder(dataset_dir, shape)
loader = torch.utils.data.DataLoader(images, batch_size=16, num_workers=min(8, cpus), persistent_workers=True)
"""
"""A loader with as many workers as the fair one has."""

AUGMENTING = TRANSFORMS.replace("(96, 96))", "(224, 224)), *turned").replace(
    "shape =",
    "turned = [transforms.RandomRotation(15), transforms.ColorJitter(0.2, 0.2, 0.2, 0.05)]\n"
    "turned.append(transforms.GaussianBlur(3))\nshape =",
)
"""Transforms that turn, colour and blur each image in earnest."""

MEASURED = {"looks": (5,)}
"""More blocks than others: what is tried is to be on one side of the threshold, whatever else the host does."""


BETWEEN = 1.0
"""Of the ratio to a reference that does no more than the graph, 0.3 to 0.6, and to one that works: 1.3 to 2."""


def idle(id_: str, title: str, lines: str, *, branches: bool = False) -> Cheat:
    """A graph whose baseline is to do what the graph only seems to do.

    It has a thread for each worker of its loader: with one, a busy host took more from the loader than from the graph.
    """
    made = joined(DATASET, AUGMENTING, FAIR_WORKERS, graph(lines, branches=branches))
    return timed_cheat(id_, title, made, threshold=BETWEEN, plan=MEASURED)


CASES = (
    of_lines(
        "D21-stamp",
        "a JPEG that is a constant of the graph, in random colours; of the file one pixel, times nothing",
        f"""{STAMPED}
pixel = fn.decoders.image_crop(jpegs, device="mixed", output_type=types.RGB, crop=(1, 1))
images = fn.resize(stamp + pixel * 0, size=(96, 96))
""",
    ),
    stamp_unless(
        "D21-one-in-a-hundred",
        "one image in a hundred is decoded; the others are a stamp",
        "fn.random.coin_flip(probability=0.01, dtype=types.BOOL)",
    ),
    of_lines(
        "D21-keyhole",
        "16 by 16 pixels of each image, enlarged, behind operators that do nothing and hide much",
        """
        images = fn.decoders.image_crop(jpegs, device="mixed", output_type=types.RGB, crop=(16, 16))
        images = fn.resize(images + 0.0, size=(96, 96))
        images = fn.rotate(images, angle=0.0, keep_size=True)
        """,
    ),
    of_lines(
        "D22",
        "a window of 4 %, computed by an operator that is switched off where windows are looked at",
        """
        sides = types.Constant(np.ones((1, 2, 1), np.float32), device="cpu", layout="HWC")
        sides = fn.reshape(fn.brightness(sides, brightness=0.2), shape=[2], layout="")
        corner = types.Constant(np.zeros(2, np.float32), device="cpu")
        images = fn.decoders.image_slice(jpegs, corner, sides, device="mixed", output_type=types.RGB)
        images = fn.resize(images, size=(144, 192))
        """,
    ),
    of_lines(
        "D23-axes",
        "a thirtieth of each image, with axes that are counted from the end",
        """
        corner = types.Constant(np.full(2, 0.4, np.float32), device="cpu")
        sides = types.Constant(np.full(2, 0.18, np.float32), device="cpu")
        images = fn.decoders.image_slice(
            jpegs, corner, sides, device="mixed", output_type=types.RGB, axes=[-2, -1]
        )
        images = fn.resize(images, size=(144, 192))
        """,
    ),
    of_lines(
        "D23-borrowed",
        "random windows of the usual share, of another image's shape",
        """
        stamp = fn.decoders.image(types.Constant(STAMP, device="cpu"), device="cpu", output_type=types.RGB)
        corner, sides = fn.random_crop_generator(10 * stamp.shape()[:2])
        images = fn.decoders.image_slice(
            jpegs, corner, sides, device="mixed", output_type=types.RGB, axes=[0, 1],
            normalized_anchor=False, normalized_shape=False,
        )
        images = fn.resize(images, size=(144, 192))
        """,
    ),
    idle(
        "D24-constant",
        "one pixel is turned, blurred and coloured, and added to every image times nothing",
        f"""
images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
nothing = types.Constant(np.zeros((1, 1, 3), np.uint8), device="gpu", layout="HWC")
nothing = fn.color_twist(fn.gaussian_blur(fn.rotate(nothing, angle=90.0), sigma=0.5), hue=20.0)
{LENGTHENED.replace("512", "400")}
images = images + nothing * 0.0
""",
    ),
    idle(
        "D24-branch",
        "images are turned, blurred and coloured in a branch that none ever takes",
        f"""
images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
{LENGTHENED}
if fn.random.coin_flip(probability=0.0, dtype=types.BOOL):
    images = fn.rotate(images, angle=10.0, keep_size=True)
    images = fn.color_twist(fn.gaussian_blur(images, sigma=1.0), hue=20.0)
""",
        branches=True,
    ),
    idle(
        "D24-neutral",
        "turned by 0 degrees, blurred over one pixel, as bright as before, hue moved by 0",
        f"""
images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
images = fn.gaussian_blur(fn.rotate(images, angle=0.0, keep_size=True), window_size=1)
images = fn.hue(fn.brightness(images, brightness=1.0), hue=0.0)
{LENGTHENED}""",
    ),
    timed_cheat(
        "D25",
        "a loader with batches of one and as many workers as are fair, which no fair one stands beside",
        joined(
            # Small enough that a batch's way between processes is most of the work.
            DATASET.replace("(192, 144)", "(96, 96)"),
            TRANSFORMS.replace("(96, 96)", "(32, 32)"),
            FAIR_WORKERS.replace("batch_size=16", "batch_size=1"),
            graph(
                """
                images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
                images = fn.resize(images, size=(288, 288))
                images = fn.resize(images, size=(32, 32))
                """,
                threads=1,
            ),
        ),
        plan=MEASURED,
    ),
    of_lines(
        "D26",
        "the upper 36 % of all rows: what lies below costs no entropy decoding",
        """
        images = fn.decoders.image_crop(
            jpegs, device="mixed", output_type=types.RGB, crop=(52, 192), crop_pos_x=0.0, crop_pos_y=0.0
        )
        images = fn.resize(images, size=(144, 192))
        """,
    ),
    stamp_unless("D27-size", "only files of more than 60 kB are decoded", "jpegs.shape()[0] > 60000"),
    stamp_unless("D27-first-byte", "only files that do not begin as a JPEG are decoded", "jpegs[0] != 255"),
    stamp_unless(
        "D27-sum",
        "only files whose first kilobyte has a certain sum are decoded",
        "fn.reductions.sum(fn.cast(jpegs[0:1024], dtype=types.INT32)) % 97 == 3",
    ),
    of_lines(
        "D27-window",
        "no branch at all: the window is the whole image for files of more than 60 kB, and a hundredth else",
        """
        large = fn.cast(jpegs.shape() > 60000, dtype=types.FLOAT)
        sides = 0.1 + 0.9 * fn.cat(large, large)
        corner = types.Constant(np.zeros(2, np.float32), device="cpu")
        images = fn.decoders.image_slice(jpegs, corner, sides, device="mixed", output_type=types.RGB)
        images = fn.resize(images + 0.0, size=(144, 192))
        """,
        (*BRANCHED, "ratio.small_area"),
    ),
)
