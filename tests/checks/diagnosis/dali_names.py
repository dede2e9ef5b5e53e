"""Writes `checks/diagnosis/names.json` from the installed DALI: `python -m tests.checks.diagnosis.dali_names`."""

import json
from pathlib import Path

import checks.diagnosis

FILE = Path(checks.diagnosis.__file__).parent / "names.json"
MODULES = ("", "readers", "decoders", "random", "noise", "transforms", "segmentation", "io.file", "experimental")
SCHEMAS = (
    "readers__File", "decoders__Image", "decoders__ImageRandomCrop", "decoders__ImageCrop", "Resize",
    "RandomResizedCrop", "ResizeCropMirror", "CropMirrorNormalize", "Crop", "Flip", "Rotate", "ColorTwist",
    "BrightnessContrast", "Hsv", "Hue", "Saturation", "GaussianBlur", "Erase", "Normalize", "Cast", "Pad", "Slice",
    "WarpAffine", "Transpose", "random__CoinFlip", "random__Uniform", "random__Normal",
)  # fmt: skip


def text() -> str:
    """The file's text for the installed version."""
    import nvidia.dali.backend
    from nvidia.dali import fn, types

    operators = []
    for name in MODULES:
        module = fn
        for part in name.split(".") if name else ():
            module = getattr(module, part)
        operators += [
            f"{name}.{item}" if name else item
            for item in sorted(dir(module))
            if not item.startswith("_") and _is_offered(getattr(getattr(module, item), "_schema_name", None))
        ]
    constants = sorted(item for item in dir(types) if item.isupper())
    names = {
        "version": nvidia.dali.__version__,
        "operators": operators,
        "types": constants,
        "arguments": {
            schema: sorted(
                name for name in nvidia.dali.backend.GetSchema(schema).GetArgumentNames() if not name.startswith("_")
            )
            for schema in SCHEMAS
        },
    }
    return json.dumps(names, indent=1) + "\n"


def _is_offered(schema: str | None) -> bool:
    """Whether a name stands for an operator that DALI's documentation offers, and not for its old name."""
    import nvidia.dali.backend

    found = nvidia.dali.backend.TryGetSchema(schema) if schema is not None else None
    return found is not None and not found.IsDocHidden() and not found.IsDeprecated()


if __name__ == "__main__":
    FILE.write_text(text())
