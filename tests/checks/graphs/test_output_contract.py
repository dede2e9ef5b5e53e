"""`output_contract` on graphs of learners, run by DALI: forms that fit, and forms that do not."""

from checks.output_contract.check import output_contract
from grader_service.model.verdict import Outcome
from tests.checks.graphs.control_tests import test_control, test_figures_in_the_docstring  # noqa: F401 - of CONTROLS
from tests.checks.graphs.controls import CROP, NORMALISE, RESIZE, USUAL, Control, Controls
from tests.checks.graphs.graphs import bare

FLOAT = "images = fn.cast(images, dtype=types.FLOAT)"
TWO = bare(RESIZE, NORMALISE) + bare(RESIZE, name="val")
CONTROLS = Controls(
    output_contract,
    "output",
    [
        *USUAL,
        Control("transposed by hand", bare(RESIZE, FLOAT, "images = fn.transpose(images, perm=[2, 0, 1])"), "ok"),
        Control("labels first", bare(CROP, NORMALISE, returned="labels, images"), "ok"),
        Control("fused decoder", bare(RESIZE, NORMALISE, decode="image_random_crop"), "ok"),
        Control("rotated", bare(RESIZE, "images = fn.rotate(images, angle=fn.random.uniform(range=(-30, 30)))",
                                "images = fn.crop(images, crop=(40, 40))", NORMALISE), "ok"),
        Control("channels last wanted", bare(RESIZE), "ok", {"layout": "HWC", "dtype": "uint8"}),
        Control("half precision", bare(RESIZE, NORMALISE.replace("STD)", "STD, dtype=types.FLOAT16)")), "ok"),
        Control("blue first wanted, and a size",
                bare("images = fn.resize(images, size=[48, 64])", NORMALISE, decoder=", output_type=types.BGR"), "ok",
                {"channel_order": "BGR", "height": 48, "width": 64}),
        Control("channels last", bare(RESIZE, NORMALISE.replace("STD)", 'STD, output_layout="HWC")')), "layout"),
        Control("channels first where last are wanted", bare(RESIZE, NORMALISE), "layout", {"layout": "HWC"}),
        Control("reshaped instead of transposed", bare(RESIZE, FLOAT, "images = fn.reshape(images, shape=[3, 64, 64])"),
                "mixed"),
        Control("height and width exchanged", bare(RESIZE, FLOAT, "images = fn.transpose(images, perm=[2, 1, 0])"),
                "transposed"),
        Control("blue first", bare(RESIZE, NORMALISE, decoder=", output_type=types.BGR"), "channel_order"),
        Control("red first where blue is wanted", bare(RESIZE, NORMALISE), "channel_order", {"channel_order": "BGR"}),
        Control("one channel", bare(RESIZE, "images = fn.crop_mirror_normalize(images, mean=[124], std=[58])",
                                    decoder=", output_type=types.GRAY"), "channels"),
        Control("three equal channels", bare(RESIZE, "images = fn.cat(images, images, images, axis=2)",
                                             "images = fn.crop_mirror_normalize(images, mean=[124], std=[58])",
                                             decoder=", output_type=types.GRAY"), "channel_order"),
        Control("another colour space", bare(RESIZE, NORMALISE, decoder=", output_type=types.YCbCr"), "channel_order"),
        Control("whole numbers", bare(RESIZE, "images = fn.transpose(images, perm=[2, 0, 1])"), "dtype"),
        Control("half precision where single is wanted", bare(RESIZE, NORMALISE.replace("STD)",
                "STD, dtype=types.FLOAT16)")), "dtype", {"dtype": "float32"}),
        Control("another size", bare(RESIZE, NORMALISE), "size", {"height": 224, "width": 224}),
        Control("sizes differ", bare(NORMALISE, decode="image_random_crop"), "ragged"),
        Control("no images", bare(returned="fn.reductions.mean(images), labels"), "no_images"),
    ],
    further=[
        Control("the first of two", TWO, "ok"),
        Control("the second of two, which is named", TWO, "layout", {"graph": "val_pipe"}),
        Control("a graph of that name is not there", TWO, "no_such_graph", {"graph": "nothing"}, Outcome.UNVERIFIED),
        # A layout that DALI is told, and that the values do not have, is not believed.
        Control("first by name", bare(RESIZE, FLOAT, 'images = fn.reinterpret(images, layout="CHW")'), "layout"),
    ],
)  # fmt: skip
