"""What the project knows of DALI's operators: one row each, and nothing of it anywhere else.

To know another operator, add its row. The row says whether a graph may have it, what it does with images, and what the
checks make of it. An operator without a row is refused: everything that runs Python or loads code, reads or writes
files beside the reader, needs data that only the learner's process has, or dumps images.

The file is read under two names: `sandbox.guest.graph.operators` in pods, where guest code stands alone, and
`checks.dali_operators`, a link to it, where checks judge, which import no sandbox. So it imports nothing of either.
"""

from dataclasses import dataclass, replace
from typing import Literal

Role = Literal["reader", "container", "other_reader", "feed", "decoder", "operator"]
Stage = Literal[
    "", "read", "decode", "random_resized_crop", "crop_mirror_normalize", "resize_crop_mirror", "resize", "crop",
    "normalize", "flip", "colour", "turn", "blur", "erase",
]  # fmt: skip
Label = Literal["", "others", "second", "second_if_single", "by_extension", "by_feature"]
Work = Literal["", "colour", "turn", "blur", "mirror", "resize", "resize_crop", "random_resized_crop", "crop"]
_ALL = 1000
_NOT_NATIVE = "it is not among the native image operators that the grader allows"


@dataclass(frozen=True)
class Row:
    """What is known of an operator, whatever its arguments; the defaults are those of one that may be in a graph."""

    role: Role = "operator"
    """`reader` reads JPEG files. `container` reads a format that holds them; it never runs, see `containers`.
    `other_reader` reads anything else, and `feed` takes its data from Python."""
    stage: Stage = ""
    """What a table of stages calls it (check `placement_table`); empty for helpers such as random numbers and casts."""
    refused: str = ""
    """Why a graph with it cannot be carried; empty when it can."""
    random: Literal["", "draws", "given", "order"] = ""
    """`draws`: it draws numbers. `given`: it makes augmentation random, with numbers that others draw. `order`: it puts
    the samples of a batch in another order, which is no augmentation."""
    gpu_only: bool = False
    """DALI 2.4 has no CPU implementation of it."""
    neutral: bool = False
    """It can be left out by giving its first input in place of its output, which is still an image that shows the same.
    That a turn keeps the size, or a filter the border, is said by their arguments."""
    work: Work = ""
    """What the reference loader has to do for it; empty for nothing, and for windows of decoders."""
    step: Literal["", "random crop", "mirror", "colour", "turn"] = ""
    """Which step of a torchvision transform does the same, or is steered by it (check `fair_baseline`)."""
    window: bool = False
    """A decoder that decodes a window of the image only."""
    cuts: bool = False
    """It takes a part of an image, or says which."""
    passes: Literal["", "always", "by_choice"] = ""
    """It hands its input on as it is; `by_choice` to one of several branches, or from one of them."""
    branch: Literal["", "split", "merge", "logic"] = ""
    """What it does in a condition of the graph: begins or ends branches, or decides between them."""
    takes: int = 1
    """Inputs that it works on, the first ones; what else it is given steers it."""
    mixes: Literal["", "always", "if_batch", "unless_shape"] = ""
    """When one sample of a batch has a say in another: always, with `batch=True`, or without numbers for `shape`."""
    reads_header: bool = False
    """It may look at encoded images: it reads their size from the header."""
    tells_file: bool = False
    """It can tell the name of the file that a sample was read from."""
    normalises: Literal["", "by_arguments", "by_content"] = ""
    """It takes mean and std from its arguments, or where they are absent from the image."""
    changes_grey: bool = False
    """A picture of one grey may come out of it as another grey, or not of one grey (probe `label_match`)."""
    slow_on_cpu: bool = False
    """On the CPU behind a decoder on the GPU, it is a likely cause of a slow graph (check `throughput_ratio`)."""
    old: bool = False
    """An old name of an operator, which DALI still has for graphs that were written with it."""
    title: str = ""
    """Of a container: how the learner calls it."""
    label: Label = ""
    """Of a container: which outputs beside the images hold one class number; see `containers`."""
    named_by: str = ""
    """Of a container: the argument that names its outputs, if one does."""

    @property
    def reads(self) -> bool:
        """Whether it reads data of any kind from files."""
        return self.role in ("reader", "container", "other_reader")

    @property
    def brings_data(self) -> bool:
        """Whether what a graph works on comes from it."""
        return self.reads or self.role == "feed"

    @property
    def augments(self) -> bool:
        """Whether it makes augmentation random."""
        return self.random in ("draws", "given") and not self.refused

    @property
    def varies(self) -> bool:
        """Whether what it gives is left to chance."""
        return self.random in ("draws", "order")

    @property
    def resizes(self) -> bool:
        """Whether it gives images another size by looking at all of their pixels."""
        return self.work in ("resize", "resize_crop", "random_resized_crop")


def _container(name: str, label: Label, named_by: str = "") -> dict[str, Row]:
    """The row of a container's reader, and that of its old names, which no table of stages has to list."""
    row = Row("container", "read", title=f"readers.{name.lower()}", label=label, named_by=named_by)
    return {
        f"readers__{name} readers___{name}": row,
        f"_{name}Reader {name}Reader": replace(row, stage="", old=True),
    }


FILE_READER, IMAGE_DECODER = "readers__File", "decoders__Image"
RESIZE, RANDOM_RESIZED_CROP = "Resize", "RandomResizedCrop"
"""Names of single operators, for code that makes one or is about it alone."""
_DECODER = Row("decoder", "decode")
_WINDOW = replace(_DECODER, window=True, cuts=True)
_RANDOM_WINDOW = replace(_WINDOW, random="draws", step="random crop")
_COLOUR = Row(stage="colour", work="colour", step="colour", neutral=True, changes_grey=True)
_NOISE = Row(random="draws", neutral=True, changes_grey=True)
_DRAW = Row(random="draws")
_TABLE: dict[str, Row] = {
    # Readers and decoders. Those that are not here and cannot be carried: see `row_of`.
    FILE_READER: Row("reader", "read"),
    "FileReader": Row("reader", "read", old=True),
    **_container("MXNet", "others"),
    **_container("TFRecord", "by_feature", "feature_names"),
    **_container("Caffe", "second"),
    **_container("Caffe2", "second_if_single"),
    **_container("Webdataset", "by_extension", "ext"),
    **_container("COCO", ""),
    f"{IMAGE_DECODER} experimental__decoders__Image": _DECODER,
    "ImageDecoder": replace(_DECODER, old=True),
    "decoders__ImageCrop experimental__decoders__ImageCrop": _WINDOW,
    "ImageDecoderCrop": replace(_WINDOW, old=True),
    "decoders__ImageSlice experimental__decoders__ImageSlice": _WINDOW,
    "ImageDecoderSlice": replace(_WINDOW, old=True),
    "decoders__ImageRandomCrop experimental__decoders__ImageRandomCrop": _RANDOM_WINDOW,
    "ImageDecoderRandomCrop": replace(_RANDOM_WINDOW, old=True),
    # Size and window
    RESIZE: Row(stage="resize", work="resize", slow_on_cpu=True),
    "TensorResize experimental__TensorResize": Row(stage="resize", work="resize"),
    "experimental__Resize": Row(stage="resize", work="resize", gpu_only=True, slow_on_cpu=True),
    "ResizeCropMirror": Row(stage="resize_crop_mirror", work="resize_crop", cuts=True, slow_on_cpu=True),
    "FastResizeCropMirror": Row(stage="resize_crop_mirror", work="resize_crop", cuts=True),
    "Crop": Row(stage="crop", work="crop", cuts=True),
    "CropMirrorNormalize": Row(
        stage="crop_mirror_normalize", work="crop", cuts=True, normalises="by_arguments", slow_on_cpu=True
    ),
    RANDOM_RESIZED_CROP: Row(
        stage="random_resized_crop", work="random_resized_crop", step="random crop", random="draws", cuts=True,
        slow_on_cpu=True,
    ),
    "RandomCropGenerator": Row(step="random crop", random="draws", cuts=True),
    "ROIRandomCrop": Row(stage="crop", step="random crop", random="draws", cuts=True),
    "RandomBBoxCrop": Row(random="draws", cuts=True),
    "Slice": Row(stage="crop", cuts=True),
    "Pad": Row(mixes="unless_shape"),
    "Paste": Row(stage="erase"),
    "MultiPaste": Row(stage="erase", takes=_ALL, mixes="always", changes_grey=True),
    # The image as it is, changed
    "Brightness": _COLOUR,
    "BrightnessContrast": _COLOUR,
    "ColorTwist": _COLOUR,
    "Contrast": _COLOUR,
    "Hsv": _COLOUR,
    "Hue": replace(_COLOUR, changes_grey=False),
    "Saturation": _COLOUR,
    "Rotate": Row(stage="turn", work="turn", step="turn", neutral=True),
    "WarpAffine": Row(stage="turn", work="turn", step="turn", neutral=True),
    "experimental__WarpPerspective": Row(stage="turn", neutral=True),
    "GaussianBlur": Row(stage="blur", work="blur", neutral=True),
    "Filter experimental__Filter": Row(stage="blur", neutral=True),
    "experimental__MedianBlur": Row(stage="blur", neutral=True, gpu_only=True),
    "Flip": Row(stage="flip", work="mirror", step="mirror", neutral=True),
    "Clahe": Row(neutral=True, changes_grey=True),
    "Equalize experimental__Equalize": Row(stage="colour", neutral=True, changes_grey=True),
    "experimental__Dilate": Row(neutral=True, gpu_only=True),
    "experimental__Erode": Row(neutral=True, gpu_only=True),
    "Erase": Row(stage="erase", neutral=True, changes_grey=True),
    "GridMask": Row(stage="erase", random="given", neutral=True, changes_grey=True),
    "JpegCompressionDistortion": Row(stage="erase", neutral=True),
    "Jitter": Row(stage="erase", random="draws", neutral=True, gpu_only=True),
    "Sphere": Row(stage="erase", neutral=True),
    "Water": Row(stage="erase", neutral=True),
    "noise__Gaussian": _NOISE,
    "noise__SaltAndPepper": _NOISE,
    "noise__Shot": _NOISE,
    # Images of other values
    "ColorSpaceConversion": Row(stage="colour"),
    "LookupTable": Row(stage="colour", changes_grey=True),
    "Laplacian": Row(stage="blur"),
    "Normalize": Row(stage="normalize", mixes="if_batch", normalises="by_content"),
    "_TensorSubscript TensorSubscript": Row(stage="crop"),
    # Random numbers, and orders of samples
    "CoinFlip random__CoinFlip": Row(step="mirror", random="draws"),
    "Uniform random__Uniform": _DRAW,
    "NormalDistribution random__Normal": _DRAW,
    "random__Beta": _DRAW,
    "random__Choice": _DRAW,
    "BatchPermutation": Row(random="order"),
    "PermuteBatch": Row(random="order", mixes="always"),
    # Passed on, by conditions too
    "Copy": Row(passes="always"),
    "MakeContiguous": Row(passes="always"),
    "_conditional__Split": Row(passes="by_choice", branch="split"),
    "_conditional__Merge": Row(passes="by_choice", branch="merge", takes=2, changes_grey=True),
    "_conditional__Not_": Row(branch="logic"),
    "_conditional__ValidateLogical": Row(branch="logic"),
    # Numbers and shapes
    "Cat": Row(takes=_ALL),
    "Stack": Row(takes=_ALL),
    "_ArithmeticGenericOp ArithmeticGenericOp": Row(takes=_ALL),
    "CoordFlip": Row(step="mirror"),
    "GetProperty": Row(tells_file=True),
    "PeekImageShape experimental__PeekImageShape": Row(reads_header=True),
    "transforms__Crop": Row(cuts=True),
    # Of these nothing is known but that a graph may have them.
    **dict.fromkeys(
        (
            "Cast", "CastLike", "Constant", "CoordTransform", "ElementExtract", "ExpandDims", "Full", "FullLike",
            "OneHot", "Ones", "OnesLike", "Reinterpret", "Reshape", "Shapes", "Squeeze", "TransformTranslation",
            "Transpose", "Zeros", "ZerosLike", "_Shape", "_SubscriptDimCheck SubscriptDimCheck", "reductions__Max",
            "reductions__Mean", "reductions__MeanSquare", "reductions__Min", "reductions__RMS", "reductions__StdDev",
            "reductions__Sum", "reductions__Variance", "transforms__Combine", "transforms__Rotation",
            "transforms__Scale", "transforms__Shear", "transforms__Translation",
        ),
        Row(),
    ),
    # Refused, with a reason of their own
    "ExternalSource": Row("feed", "read", refused="fn.external_source feeds the graph from Python code"),
    "DLTensorPythonFunctionImpl": Row(refused="fn.python_function runs Python code inside the graph"),
    "io__file__Read": Row(refused="fn.io.file.read (DALI Proxy) reads files by names that Python code supplies"),
    # Refused as all others are, and known, since a graph that is carried may have had them beside its images
    "NemoAsrReader": Row("other_reader", refused=_NOT_NATIVE, old=True),
    "NumpyReader": Row("other_reader", refused=_NOT_NATIVE, old=True),
    "SequenceReader": Row("other_reader", refused=_NOT_NATIVE, old=True),
    "VideoReader": Row("other_reader", refused=_NOT_NATIVE, old=True),
    "SSDRandomCrop": Row(step="random crop", refused=_NOT_NATIVE, random="draws", cuts=True),
    "BbFlip": Row(step="mirror", refused=_NOT_NATIVE),
    "BBoxRotate": Row(step="turn", refused=_NOT_NATIVE),
}  # fmt: skip
OPERATORS = {name: row for names, row in _TABLE.items() for name in names.split()}
"""Schema name → row: each row has an operator's names that differ in nothing else, with blanks between."""


def row_of(name: str) -> Row:
    """What is known of an operator by its schema name, also of one without a row, which is refused."""
    if name in OPERATORS:
        return OPERATORS[name]
    if name.startswith(("readers__", "experimental__readers__")):
        format_read = name.rpartition("__")[2]
        why = f"{format_read} reads a container format, not the JPEG files themselves"
        return Row("other_reader", "read", refused=why)
    if name.startswith(("decoders__", "experimental__decoders__")):
        return Row(stage="decode", refused=_NOT_NATIVE)
    return Row(refused=_NOT_NATIVE)
