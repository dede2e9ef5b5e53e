"""Names of DALI's operators, their arguments and constants, to guess which one a misspelt name stands for.

`python -m tests.checks.diagnosis.dali_names` writes `names.json` from an installed DALI, because the judge has none.
"""

import difflib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from grader_service.model.base import Wire

_LIKE = 0.6
"""Share of equal letters from which on a name counts as meant."""
_TORCHVISION = {
    "shuffle": "random_shuffle",
    "layout": "output_layout",
    "normalise": "crop_mirror_normalize",
    "jpeg": "decoders.image",
    "colorjitter": "color_twist",
    "randomhorizontalflip": "flip",
    "shape": "size",
    "float32": "FLOAT",
    "float64": "FLOAT64",
    "float": "FLOAT",
}
"""Names of other libraries, or of the thing itself, where the letters do not help."""


class Names(Wire):
    """What one version of DALI has."""

    version: str
    operators: tuple[str, ...]
    """Below `nvidia.dali.fn`, such as `readers.file`."""
    types: tuple[str, ...]
    """Constants of `nvidia.dali.types`."""
    arguments: Mapping[str, tuple[str, ...]]
    """Arguments by the operator's schema, such as `CropMirrorNormalize`."""


@cache
def dali_names() -> Names:
    """The names of the DALI version that the lab's image has."""
    return Names.model_validate_json((files("checks.diagnosis") / "names.json").read_bytes())


def suggestion(kind: Literal["operators", "types", "arguments"], values: Mapping[str, str]) -> str:
    """A sentence with the name that may have been meant; empty when none is like it.

    Args:
        kind: where to look.
        values: `name` (or `other`) is what was written, `schema` the operator whose argument it is.
    """
    known, written = dali_names(), values.get("name") or values.get("other") or ""
    if kind == "arguments":
        meant = _nearest(written, known.arguments.get(values.get("schema", ""), ()))
        return f"You may mean `{meant}`." if meant else ""
    meant = _nearest(written, known.operators if kind == "operators" else known.types)
    return f"You may mean {'fn' if kind == 'operators' else 'types'}.{meant}." if meant else ""


def _nearest(written: str, known: tuple[str, ...]) -> str:
    """The known name that is most like what was written, letter case, underscores and module left aside."""
    other = _TORCHVISION.get(written.lower())
    if other in known:
        return other or ""
    plain: dict[str, str] = {}
    for name in known:
        plain.setdefault(_letters(name.rpartition(".")[2]), name)
        plain.setdefault(_letters(name), name)
    found = difflib.get_close_matches(_letters(written[:60]), plain, n=1, cutoff=_LIKE)
    return plain[found[0]] if found else ""


def _letters(name: str) -> str:
    return name.lower().replace("_", "").replace(".", "")
