"""Names of DALI operators as learners write them, and where they stand."""

import re

from grader_service.model.place import Place

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CELL = re.compile(r"cell_0{0,5}([1-9]\d{0,4})\.py")
"""As a notebook's cells are written to files."""
_MOST_LINES = 10_000_000


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


def place_of(file: str, line: int | None) -> Place | None:
    """The learner's line for feedback; None where the graph does not say it."""
    if not file or line is None or not 1 <= line <= _MOST_LINES:
        return None
    cell = _CELL.fullmatch(file)
    return Place(file=file, line=line, cell=int(cell[1]) if cell is not None else None)
