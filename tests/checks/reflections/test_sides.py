"""Evidence for each side, and what one item is by itself."""

import pytest

from checks.reflections.reader import read
from checks.reflections.reasons import Reason, Side
from checks.reflections.sides import weigh
from checks.reflections.substance import assess


def reason(text, side):
    """What becomes of one item alone."""
    return assess(read(text), side, text).reason


WINNING = [
    "ResNet-50 on ImageNet with 4 CPU cores per GPU",
    "4K video clips",
    "SimCLR-style heavy augmentation",
    "Eight GPUs share one CPU",
    "Serving a small model on JPEG uploads",
    "Fotos von 20 Megapixeln, die CPU kommt nicht hinterher",
    "视频用NVDEC解码，不占CPU",
    "Unlike BERT with its ready token ids, each JPEG must be decompressed in every epoch",
]
LOSING = [
    "BERT, nothing to decode",
    "CIFAR-10, tiny images",
    "Data on a slow NFS mount",
    "Huge ViT already keeping the GPU at 100 %",
    "Custom Python transforms without an equivalent operator",
    "AMD workstation without CUDA",
    "GPU memory is full and the buffers cause OOM",
    "Even with large JPEGs it loses when a 600M-parameter ViT takes 2 s per step",
    "表格数据，全是数字",
]


@pytest.mark.parametrize(
    ("text", "side", "other"),
    [*((text, Side.WINS, Side.LOSES) for text in WINNING), *((text, Side.LOSES, Side.WINS) for text in LOSING)],
)
def test_scenarios_count_on_their_side_alone(text, side, other):
    """Winning ones count as wins, losing ones as losses, and neither as anything else."""
    assert reason(text, side) is Reason.COUNTED
    assert reason(text, other) is not Reason.COUNTED


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("Tokenised text wins because GPUs tokenise faster, e.g. with nvJPEG", Side.WINS),
        ("MNIST, since tiny images have the highest decode cost per pixel", Side.WINS),
        ("Small models get higher accuracy as GPU-decoded pixels contain more information", Side.WINS),
        ("Few cores win because the CPU has plenty of cores", Side.WINS),
        ("Large images lose since DALI can't handle more than 512x512 pixels", Side.LOSES),
        ("H.264 video because software decoding is faster than NVDEC", Side.LOSES),
        ("High-resolution photos with heavy augmentation, because these put hardly any load on a CPU", Side.LOSES),
    ],
)
def test_untrue_scenarios_do_not_count(text, side):
    """Those of the other side stay there whatever they claim."""
    assert reason(text, side) is not Reason.COUNTED


@pytest.mark.parametrize(
    "text", ["image classification", "object detection on images", "It is faster.", "large datasets"]
)
def test_no_mechanism(text):
    """A task or a virtue is no scenario."""
    assert reason(text, Side.WINS) in {Reason.VAGUE, Reason.OFF_TOPIC, Reason.TOO_SHORT}


def test_asides_carry_no_weight():
    """What an item sets itself off from is no evidence."""
    assert weigh(read("photos, unlike tabular rows")).loss < weigh(read("photos and tabular rows")).loss
