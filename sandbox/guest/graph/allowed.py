"""Which operators a graph may have, and how one that has others is refused."""

WHY = {
    "ExternalSource": "fn.external_source feeds the graph from Python code",
    "DLTensorPythonFunctionImpl": "fn.python_function runs Python code inside the graph",
    "io__file__Read": "fn.io.file.read (DALI Proxy) reads files by names that Python code supplies",
}
READERS = frozenset({"readers__File", "FileReader"})
CONTAINERS = {
    name: f"readers.{title.lower()}"
    for title in ("MXNet", "TFRecord", "Caffe", "Caffe2", "Webdataset", "COCO")
    for name in (f"readers__{title}", f"readers___{title}", f"_{title}Reader", f"{title}Reader")
}
"""Readers of container formats, by schema name: how the learner calls them. They never run; see `containers`."""
DECODERS = frozenset(
    f"{prefix}{name}"
    for prefix, names in (
        ("", ("ImageDecoder", "ImageDecoderCrop", "ImageDecoderRandomCrop", "ImageDecoderSlice")),
        ("decoders__", ("Image", "ImageCrop", "ImageRandomCrop", "ImageSlice")),
        ("experimental__decoders__", ("Image", "ImageCrop", "ImageRandomCrop", "ImageSlice")),
    )
    for name in names
)
# Native operators over images and numbers. Not listed, so refused: everything that runs Python or loads code, reads or
# writes files beside the reader, needs data that only the learner's process has, or dumps images.
ALLOWED = READERS | DECODERS | frozenset({
    "BatchPermutation", "Brightness", "BrightnessContrast", "Cast", "CastLike", "Cat", "Clahe", "CoinFlip",
    "ColorSpaceConversion", "ColorTwist", "Constant", "Contrast", "CoordFlip", "CoordTransform", "Copy", "Crop",
    "CropMirrorNormalize", "ElementExtract", "Equalize", "Erase", "ExpandDims", "FastResizeCropMirror", "Filter",
    "Flip", "Full", "FullLike", "GaussianBlur", "GetProperty", "GridMask", "Hsv", "Hue", "Jitter",
    "JpegCompressionDistortion", "Laplacian", "LookupTable", "MakeContiguous", "MultiPaste", "NormalDistribution",
    "Normalize", "OneHot", "Ones", "OnesLike", "Pad", "Paste", "PeekImageShape", "PermuteBatch", "ROIRandomCrop",
    "RandomCropGenerator", "RandomResizedCrop", "Reinterpret", "Reshape", "Resize", "ResizeCropMirror", "Rotate",
    "Saturation", "Shapes", "Slice", "Sphere", "Squeeze", "Stack", "TensorResize", "TransformTranslation",
    "Transpose", "Uniform", "WarpAffine", "Water", "Zeros", "ZerosLike", "_ArithmeticGenericOp",
    "ArithmeticGenericOp", "_Shape", "_SubscriptDimCheck", "_TensorSubscript", "TensorSubscript",
    "SubscriptDimCheck", "_conditional__Merge", "_conditional__Not_", "_conditional__Split",
    "_conditional__ValidateLogical", "experimental__Dilate", "experimental__Equalize", "experimental__Erode",
    "experimental__Filter", "experimental__MedianBlur", "experimental__PeekImageShape", "experimental__Resize",
    "experimental__TensorResize", "experimental__WarpPerspective", "noise__Gaussian", "noise__SaltAndPepper",
    "noise__Shot", "random__Beta", "random__Choice", "random__CoinFlip", "random__Normal", "random__Uniform",
    "reductions__Max", "reductions__Mean", "reductions__MeanSquare", "reductions__Min", "reductions__RMS",
    "reductions__StdDev", "reductions__Sum", "reductions__Variance", "transforms__Combine", "transforms__Crop",
    "transforms__Rotation", "transforms__Scale", "transforms__Shear", "transforms__Translation",
})  # fmt: skip


class GraphRefused(ValueError):
    """The graph cannot be carried into the clean room; `reason` is a word, the message is for the learner."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
