"""Names of DALI operators as learners write them, and where they stand."""

import re

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CELL = re.compile(r"cell_(\d{3,6})\.py")


def fn_name(schema: str) -> str:
    """The function of `nvidia.dali.fn` for a schema name: `decoders__ImageCrop` is `fn.decoders.image_crop`."""
    *modules, operator = schema.lstrip("_").split("__")
    return ".".join(("fn", *modules, _WORDS.sub("_", operator).lower()))


def where(file: str, line: int | None) -> str:
    """The place of an operator, such as ` in graph.py, line 12` or ` in cell 3, line 2`; empty if it is not known."""
    if not file or line is None:
        return ""
    cell = _CELL.fullmatch(file)
    return f" in {f'cell {int(cell[1])}' if cell is not None else file}, line {line}"
