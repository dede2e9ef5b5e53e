"""Ways to decode, and forms of what comes out: K10 to K15, K30 to K32."""

import textwrap

from tests.corpus.case import Honest
from tests.corpus.parts_honest import (
    DALI,
    GRADIENTS,
    ITERATOR,
    MEASURED,
    PIPED,
    REFLECTED,
    ROOM,
    TIMED,
    TORCH,
    WHOLE,
    honest,
)

PIPE = """
@pipeline_def(batch_size=BATCH, num_threads=2, device_id=0)
def train_pipe():
    jpegs, labels = fn.readers.file(file_root=str(dataset_dir), random_shuffle=True, name="Reader")
BODY
    return images, labels
"""


def pipe(body: str) -> str:
    """The pipeline with these lines between reader and return."""
    return PIPE.replace("BODY", textwrap.indent(body.strip(), "    "))


def lab(id_: str, title: str, body: str, steps: tuple[str, ...] = WHOLE, *, data: str = GRADIENTS) -> Honest:
    """A whole lab with this pipeline."""
    return honest(id_, title, data, TORCH, DALI, pipe(body), ITERATOR, TIMED, REFLECTED, steps=steps)


LEAVES_UINT8 = """
dali_loader = DALIGenericIterator(train_pipe(), ["data", "label"], reader_name="Reader", auto_reset=True)
first_batch = next(dali_loader)[0]["data"]
print(first_batch.dtype, first_batch.shape)
dali_throughput = 1200.0
"""


def of_type(id_: str, steps: tuple[str, ...], last: str, after: str = "") -> Honest:
    """Batches of the type that the id names, by the graph's last lines and what follows it."""
    title = f"{id_.removeprefix('K31-')} comes out of the graph"
    made = pipe('images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(96, 96))\n' + last)
    return honest(id_, title, GRADIENTS, TORCH, DALI, made, LEAVES_UINT8, after, steps=steps)


CASES = (
    lab(
        "K10-mixed-decoder",
        "decoders.image on the GPU, resize by its shorter side, centre crop",
        """
images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
images = fn.resize(images, device="gpu", resize_shorter=110, interp_type=types.INTERP_LINEAR)
images = normalise(images, crop=(96, 96), crop_pos_x=0.5, crop_pos_y=0.5)
labels = labels.gpu()
""",
        data=ROOM,
    ),
    lab(
        "K11-cpu-decoder-then-gpu",
        "decoded on the CPU, then .gpu() before resize and normalise",
        """
images = fn.decoders.image(jpegs, device="cpu", output_type=types.RGB)
images = fn.resize(images.gpu(), size=(96, 96))
images = normalise(images)
""",
    ),
    lab(
        "K12-fused-random-crop",
        "image_random_crop with its own area and aspect, then resize",
        """
images = fn.decoders.image_random_crop(jpegs, device="mixed", random_aspect_ratio=[0.75, 4 / 3],
                                       random_area=[0.08, 1.0], num_attempts=100)
images = fn.resize(images, resize_x=96, resize_y=96, interp_type=types.INTERP_TRIANGULAR)
images = normalise(images, mirror=fn.random.coin_flip())
""",
    ),
    lab(
        "K13-image-crop",
        "image_crop decodes only a window",
        """
images = fn.decoders.image_crop(jpegs, device="mixed", crop=(160, 200),
                                crop_pos_x=fn.random.uniform(range=(0.0, 1.0)))
images = normalise(fn.resize(images, size=(96, 96)))
""",
    ),
    lab(
        "K13-image-slice",
        "image_slice with an anchor that is computed in the graph",
        """
anchor = fn.random.uniform(range=(0.0, 0.15), shape=(2,))
images = fn.decoders.image_slice(jpegs, anchor, fn.constant(fdata=[0.85, 0.85]), device="mixed")
images = normalise(fn.resize(images, size=(96, 96)))
""",
        PIPED,
    ),
    lab(
        "K14-experimental-decoder",
        "experimental.decoders.image (nvImageCodec)",
        """
images = fn.experimental.decoders.image(jpegs, device="mixed", output_type=types.RGB)
images = normalise(fn.resize(images, size=(96, 96)))
""",
    ),
    lab(
        "K15-decoder-settings",
        "share of the hardware decoder, paddings and size hints",
        """
images = fn.decoders.image(
    jpegs, device="mixed", output_type=types.RGB, hw_decoder_load=0.9, hybrid_huffman_threshold=100_000,
    device_memory_padding=211025920, host_memory_padding=140544512,
    preallocate_width_hint=5980, preallocate_height_hint=6430, use_fast_idct=True, jpeg_fancy_upsampling=False,
)
images = normalise(fn.resize(images, size=(96, 96), antialias=True))
""",
    ),
    lab(
        "K15-decoder-cache",
        "a decoder cache, which the lab's page does not forbid",
        """
images = fn.decoders.image(jpegs, device="mixed", cache_size=200, cache_type="threshold", cache_threshold=0)
images = normalise(fn.resize(images, size=(96, 96)))
""",
        PIPED,
    ),
    honest(
        "K30-nhwc",
        "NHWC floats, permuted in torch",
        ROOM,
        TORCH,
        DALI,
        pipe("""
images = fn.decoders.image(jpegs, device="mixed")
images = fn.resize(images, size=(96, 96))
images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="HWC", std=[255.0, 255.0, 255.0])
"""),
        """
        dali_loader = DALIClassificationIterator(train_pipe(), reader_name="Reader", auto_reset=True)
        first_batch = next(dali_loader)[0]["data"].permute(0, 3, 1, 2)
        assert first_batch.shape[1] == 3
        """,
        TIMED,
        steps=MEASURED,
    ),
    of_type(
        "K31-float16",
        MEASURED,
        "images = normalise(images).gpu()\nimages = fn.cast(images, dtype=types.FLOAT16)",
        "first_batch = first_batch.half()",
    ),
    of_type(
        "K31-uint8",
        MEASURED,
        "",
        "with torch.cuda.amp.autocast():\n    first_batch = first_batch.permute(0, 3, 1, 2) / 255",
    ),
    of_type(
        "K31-int8",
        PIPED,
        "images = fn.crop_mirror_normalize(images, dtype=types.INT8, mean=[128.0] * 3, std=[1.0] * 3)",
    ),
    of_type(
        "K31-bfloat16-cast", ("pipeline",), "images = normalise(images)", "first_batch = first_batch.to(torch.bfloat16)"
    ),
    lab(
        "K32-0-to-255",
        "floats from 0 to 255",
        """
images = fn.decoders.image(jpegs, device="mixed")
images = fn.crop_mirror_normalize(fn.resize(images, size=(96, 96)), output_layout="CHW")
""",
    ),
    lab(
        "K32-bgr",
        "BGR, as OpenCV has it",
        """
images = fn.decoders.image(jpegs, device="mixed", output_type=types.BGR)
images = normalise(fn.resize(images, size=(96, 96)))
""",
    ),
    lab(
        "K32-grey",
        "one channel",
        """
images = fn.decoders.image(jpegs, device="mixed", output_type=types.GRAY)
images = fn.crop_mirror_normalize(fn.resize(images, size=(96, 96)), mean=[127.5], std=[127.5])
""",
    ),
)
