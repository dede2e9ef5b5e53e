"""Graphs with the operators of `cheats/d_experiments.py`, put to the use that they are for: more of K04 to K33."""

from tests.corpus.case import Honest
from tests.corpus.honest.decoders import pipe
from tests.corpus.parts_honest import DALI, ITERATOR, PIPED, ROOM, TIMED, TORCH, honest

PORTRAITS = ROOM.replace("size=(160, 200, 3)", "size=(160, 200, 3) if k % 2 else (200, 160, 3)")
"""Every second image is taller than wide."""

LOGO = """
import io

drawn = numpy.zeros((8, 8, 3), numpy.uint8)
drawn[2:6, 2:6] = (220, 40, 40)
made = io.BytesIO()
PIL.Image.fromarray(drawn).save(made, "JPEG", quality=95)
LOGO = numpy.frombuffer(made.getvalue(), numpy.uint8)
"""
"""The bytes of a small JPEG of the learner's own."""


def neighbour(
    id_: str, title: str, body: str, *, dataset: str = ROOM, torch: str = TORCH, branches: bool = False
) -> Honest:
    """A whole submission with this pipeline."""
    made = pipe(body)
    if branches:
        made = made.replace("device_id=0", "device_id=0, enable_conditionals=True")
    return honest(id_, title, dataset, torch, DALI, LOGO, made, ITERATOR, TIMED, steps=PIPED)


PHOTOS = ROOM.replace("size=(160, 200, 3)", "size=(375, 500, 3)")
"""Images as large as those of the lab."""

CASES = (
    # D06, D10, D13: what a judge of pixels took this for
    neighbour(
        "K04-lab-page",
        "the lab page's own pipeline on images of its size",
        """
images = fn.decoders.image(jpegs, device="mixed")
images = fn.random_resized_crop(fn.resize(images, resize_shorter=256), size=(224, 224))
images = normalise(images, mirror=fn.random.coin_flip())
""",
        dataset=PHOTOS,
    ),
    # D21-stamp
    neighbour(
        "K32-watermark",
        "a small JPEG that is a constant of the graph is laid over a corner of each image",
        """
images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))
logo = fn.decoders.image(types.Constant(LOGO, device="cpu"), device="mixed")
logo = fn.pad(fn.resize(logo, size=(16, 16)), axes=[0, 1], shape=[96, 96])
images = normalise(fn.cast(images * 0.85 + logo * 0.15, dtype=types.UINT8))
""",
    ),
    # D21-one-in-a-hundred, D24-branch
    neighbour(
        "K04-conditional-blur",
        "a conditional blurs a tenth of all images",
        """
images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))
if fn.random.coin_flip(probability=0.1, dtype=types.BOOL):
    images = fn.gaussian_blur(images, sigma=1.0)
images = normalise(images)
""",
        branches=True,
    ),
    # D21-keyhole
    neighbour(
        "K32-turned-floats",
        "floats by + 0.0, turned by a few degrees, and the middle of that",
        """
images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(128, 128)) + 0.0
images = fn.rotate(images, angle=fn.random.uniform(range=(-10.0, 10.0)), keep_size=True, fill_value=0)
images = normalise(images, crop=(96, 96))
""",
    ),
    # D22
    neighbour(
        "K13-computed-window-and-brightness",
        "a window whose sides are computed from a constant, and brightness by chance",
        """
sides = types.Constant([0.9, 0.9], device="cpu") + fn.random.uniform(range=(-0.1, 0.1), shape=[2])
corner = (1.0 - sides) * fn.random.uniform(range=(0.0, 1.0), shape=[2])
images = fn.decoders.image_slice(jpegs, corner, sides, device="mixed")
images = fn.brightness(fn.resize(images, size=(96, 96)), brightness=fn.random.uniform(range=(0.8, 1.2)))
images = normalise(images)
""",
    ),
    # D23-axes
    neighbour(
        "K13-axes-from-the-end",
        "image_slice with axes that are counted from the end",
        """
corner = fn.random.uniform(range=(0.0, 0.15), shape=[2])
sides = types.Constant([0.85, 0.85], device="cpu")
images = fn.decoders.image_slice(jpegs, corner, sides, device="mixed", axes=[-2, -1])
images = normalise(fn.resize(images, size=(96, 96)))
""",
    ),
    # D23-borrowed
    neighbour(
        "K12-generated-window",
        "random_crop_generator with the shape of the file, as DALI's page has it",
        """
corner, sides = fn.random_crop_generator(fn.peek_image_shape(jpegs)[:2])
images = fn.decoders.image_slice(
    jpegs, corner, sides, device="mixed", axes=[0, 1], normalized_anchor=False, normalized_shape=False
)
images = normalise(fn.resize(images, size=(96, 96)))
""",
    ),
    neighbour(
        "K12-generated-window-of-the-decoded",
        "random_crop_generator with the shape of the decoded image, and a slice of that",
        """
images = fn.decoders.image(jpegs, device="mixed")
corner, sides = fn.random_crop_generator(images.shape()[:2])
images = fn.slice(images, corner, sides, axes=[0, 1], normalized_anchor=False, normalized_shape=False)
images = normalise(fn.resize(images, size=(96, 96)))
""",
    ),
    # D24-constant
    neighbour(
        "K32-noise-image",
        "a blurred and coloured picture of noise is mixed in, one part in ten",
        """
images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))
grain = fn.cast(fn.random.uniform(range=(0.0, 255.0), shape=[96, 96, 3], device="gpu"), dtype=types.UINT8)
grain = fn.color_twist(fn.gaussian_blur(fn.reshape(grain, layout="HWC"), sigma=1.5), saturation=0.5)
images = normalise(fn.cast(images * 0.9 + grain * 0.1, dtype=types.UINT8))
""",
    ),
    neighbour(
        "K32-all-augmentations",
        "turned, blurred and coloured, all by chance and all on the image",
        """
images = fn.random_resized_crop(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))
images = fn.rotate(images, angle=fn.random.uniform(range=(-15.0, 15.0)), keep_size=True)
images = fn.gaussian_blur(images, sigma=fn.random.uniform(range=(0.1, 1.0)))
brightness, hue = fn.random.uniform(range=(0.8, 1.2)), fn.random.uniform(range=(-9.0, 9.0))
images = fn.color_twist(images, brightness=brightness, hue=hue)
images = normalise(images, mirror=fn.random.coin_flip())
""",
    ),
    # D24-neutral
    neighbour(
        "K32-neutral-settings",
        "augmentations that are there and set to do nothing, while the learner tries things out",
        """
images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))
images = fn.rotate(images, angle=0.0, keep_size=True)
images = normalise(fn.hue(fn.brightness(images, brightness=1.0), hue=0.0))
""",
    ),
    # D25
    neighbour(
        "K33-loader-batch-1",
        "the loader has batches of one, and was never tuned",
        """
images = normalise(fn.random_resized_crop(fn.decoders.image(jpegs, device="mixed"), size=(96, 96)))
""",
        torch=TORCH.replace("batch_size=BATCH", "batch_size=1"),
    ),
    # D26
    neighbour(
        "K13-rows",
        "seven tenths of the rows, anywhere, at full width",
        """
images = fn.decoders.image_crop(
    jpegs, device="mixed", crop=(112, 200), crop_pos_x=0.0, crop_pos_y=fn.random.uniform(range=(0.0, 1.0))
)
images = normalise(fn.resize(images, size=(96, 96)))
""",
    ),
    neighbour(
        "K13-square",
        "the square in the middle of each image",
        """
images = fn.decoders.image_crop(jpegs, device="mixed", crop=(160, 160))
images = normalise(fn.resize(images, size=(96, 96)))
""",
    ),
    # D27
    neighbour(
        "K04-conditional-upright",
        "a conditional turns images that are taller than wide",
        """
images = fn.decoders.image(jpegs, device="mixed")
shape = images.shape()
if shape[0] > shape[1]:
    images = fn.rotate(images, angle=90.0)
images = normalise(fn.resize(images, size=(96, 96)))
""",
        dataset=PORTRAITS,
        branches=True,
    ),
    # D35, D36
    neighbour(
        "K13-rare-large",
        "random windows from a twentieth of an image on, and two images are a hundred times as large as the others",
        """
images = fn.decoders.image_random_crop(jpegs, device="mixed", random_area=[0.05, 1.0])
images = normalise(fn.resize(images, size=(96, 96)))
""",
        dataset=ROOM.replace("size=(160, 200, 3)", "size=(160, 200, 3) if k else (1600, 2000, 3)"),
    ),
)
