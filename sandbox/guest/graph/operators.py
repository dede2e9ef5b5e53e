"""What the grader knows of DALI's operators, in one table: which a graph may have, and what each does to an image.

An operator that is not in the table is refused: everything that runs Python or loads code, reads or writes files beside
the reader, needs data that only the learner's process has, or dumps images.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Role = Literal["reader", "container", "decoder", "operator"]
Work = Literal["", "colour", "turn", "blur", "mirror", "resize", "resize_crop", "random_resized_crop", "crop"]
_ALL = 1000


@dataclass(frozen=True)
class Kind:
    """One row: what is known of an operator, whatever its arguments."""

    role: Role = "operator"
    """`reader` reads JPEG files, `container` a format that holds them; it never runs, see `containers`."""
    title: str = ""
    """Of a container: how the learner calls it."""
    refused: str = ""
    """Why a graph with it cannot be carried; empty when it can."""
    random: bool = False
    """It makes augmentation random, or is what a learner makes it random with."""
    gpu_only: bool = False
    """DALI 2.4 has no CPU implementation of it."""
    neutral: bool = False
    """It can be left out by giving its first input in place of its output, which is still an image that shows the same.
    That a turn keeps the size, or a filter the border, is said by their arguments."""
    work: Work = ""
    """What the reference loader has to do for it; empty for nothing, and for windows of decoders."""
    window: bool = False
    """A decoder that decodes a window of the image only."""
    passes: Literal["", "always", "by_choice"] = ""
    """It hands its input on as it is; `by_choice` to one of several branches, or from one of them."""
    takes: int = 1
    """Inputs that it works on, the first ones; what else it is given steers it."""
    mixes: bool = False
    """One sample of a batch has a say in another one."""

    @property
    def resizes(self) -> bool:
        """Whether it gives images another size by looking at all of their pixels."""
        return self.work in ("resize", "resize_crop", "random_resized_crop")


_CONTAINERS = ("MXNet", "TFRecord", "Caffe", "Caffe2", "Webdataset", "COCO")
_TABLE: tuple[tuple[Kind, str], ...] = (
    (Kind("reader"), "readers__File FileReader"),
    *(
        (Kind("container", f"readers.{name.lower()}"), f"readers__{name} readers___{name} _{name}Reader {name}Reader")
        for name in _CONTAINERS
    ),
    (Kind("decoder"), "ImageDecoder decoders__Image experimental__decoders__Image"),
    (
        Kind("decoder", window=True),
        "ImageDecoderCrop decoders__ImageCrop experimental__decoders__ImageCrop "
        "ImageDecoderSlice decoders__ImageSlice experimental__decoders__ImageSlice",
    ),
    (
        Kind("decoder", window=True, random=True),
        "ImageDecoderRandomCrop decoders__ImageRandomCrop experimental__decoders__ImageRandomCrop",
    ),
    # Size and window
    (Kind(work="resize"), "Resize TensorResize experimental__TensorResize"),
    (Kind(work="resize", gpu_only=True), "experimental__Resize"),
    (Kind(work="resize_crop"), "ResizeCropMirror FastResizeCropMirror"),
    (Kind(work="crop"), "Crop CropMirrorNormalize"),
    (Kind(work="random_resized_crop", random=True), "RandomResizedCrop"),
    (Kind(random=True), "RandomCropGenerator ROIRandomCrop RandomBBoxCrop"),
    (Kind(), "Slice Pad Paste"),
    (Kind(takes=_ALL, mixes=True), "MultiPaste"),
    # The image as it is, changed
    (
        Kind(work="colour", neutral=True),
        "Brightness BrightnessContrast ColorTwist Contrast Hsv Hue Saturation",
    ),
    (Kind(work="turn", neutral=True), "Rotate WarpAffine"),
    (Kind(work="blur", neutral=True), "GaussianBlur"),
    (Kind(work="mirror", neutral=True), "Flip"),
    (
        Kind(neutral=True),
        "Clahe Equalize Erase Filter JpegCompressionDistortion Sphere Water experimental__Equalize "
        "experimental__Filter experimental__WarpPerspective",
    ),
    (Kind(neutral=True, gpu_only=True), "experimental__Dilate experimental__Erode experimental__MedianBlur"),
    (Kind(neutral=True, random=True), "GridMask noise__Gaussian noise__SaltAndPepper noise__Shot"),
    (Kind(neutral=True, random=True, gpu_only=True), "Jitter"),
    # Random numbers
    (
        Kind(random=True),
        "CoinFlip NormalDistribution Uniform "
        "random__Beta random__Choice random__CoinFlip random__Normal random__Uniform",
    ),
    # Passed on
    (Kind(passes="always"), "Copy MakeContiguous"),
    (Kind(passes="by_choice"), "_conditional__Split"),
    (Kind(passes="by_choice", takes=2), "_conditional__Merge"),
    # Images, numbers and shapes
    (Kind(mixes=True), "PermuteBatch"),
    (Kind(takes=_ALL), "Cat Stack _ArithmeticGenericOp ArithmeticGenericOp"),
    (
        Kind(),
        "BatchPermutation Cast CastLike ColorSpaceConversion Constant CoordFlip CoordTransform ElementExtract "
        "ExpandDims Full FullLike GetProperty Laplacian LookupTable Normalize OneHot Ones OnesLike PeekImageShape "
        "Reinterpret Reshape Shapes Squeeze TransformTranslation Transpose Zeros ZerosLike "
        "_Shape _SubscriptDimCheck SubscriptDimCheck _TensorSubscript "
        "TensorSubscript _conditional__Not_ _conditional__ValidateLogical experimental__PeekImageShape "
        "reductions__Max reductions__Mean reductions__MeanSquare reductions__Min reductions__RMS reductions__StdDev "
        "reductions__Sum reductions__Variance transforms__Combine transforms__Crop transforms__Rotation "
        "transforms__Scale transforms__Shear transforms__Translation",
    ),
    # Refused, with a reason of their own
    (Kind(refused="fn.external_source feeds the graph from Python code"), "ExternalSource"),
    (Kind(refused="fn.python_function runs Python code inside the graph"), "DLTensorPythonFunctionImpl"),
    (
        Kind(refused="fn.io.file.read (DALI Proxy) reads files by names that Python code supplies"),
        "io__file__Read",
    ),
)
KINDS = {name: row for row, names in _TABLE for name in names.split()}
"""Schema name → row."""


def _names(chosen: Callable[[Kind], bool]) -> frozenset[str]:
    return frozenset(name for name, row in KINDS.items() if chosen(row))


READERS = _names(lambda row: row.role == "reader")
CONTAINERS = {name: row.title for name, row in KINDS.items() if row.role == "container"}
"""Readers of container formats: how the learner calls them."""
DECODERS = _names(lambda row: row.role == "decoder")
ALLOWED = _names(lambda row: row.role != "container" and not row.refused)
"""What may run in the clean room."""
PASSES = _names(lambda row: bool(row.passes))
"""Operators through which encoded images reach a decoder unchanged."""
SHAPE_READERS = frozenset({"PeekImageShape", "experimental__PeekImageShape"})
"""Operators beside decoders that may look at encoded images: they read the size from the header."""


class GraphRefused(ValueError):
    """The graph cannot be carried into the clean room; `reason` is a word, the message is for the learner."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def kind(name: str) -> Kind | None:
    """The row of an operator; None for one that is not in the table, and so refused."""
    return KINDS.get(name)


def refusal(name: str) -> str:
    """Why a graph with this operator is refused; empty for one that may be there."""
    row = KINDS.get(name)
    if row is not None:
        return row.refused
    if name.startswith(("readers__", "experimental__readers__")):
        return f"{name.rpartition('__')[2]} reads a container format, not the JPEG files themselves"
    return "it is not among the native image operators that the grader allows"
