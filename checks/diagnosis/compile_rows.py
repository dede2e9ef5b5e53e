"""Compiles the rows to `rows.json`: `python -m checks.diagnosis.compile_rows`.

Each file below `rows/` is a family and holds an array of tables, `[[rows]]`. Their order counts within the file; files
follow each other as in `rows.FAMILIES`, and all of that after `order`. A test holds the compiled file to its sources.
"""

import tomllib
from pathlib import Path

from checks.diagnosis.rows import FAMILIES, ORDERS, ROWS, Row

FOLDER = Path(__file__).parent
COMPILED = FOLDER / "rows.json"


def read_sources() -> tuple[Row, ...]:
    """The rows as they are written, in the order in which they are tried.

    Raises:
        pydantic.ValidationError: a row is not well-formed.
        ValueError: two rows have one id.
    """
    found = [row for family in FAMILIES for row in _family(family)]
    ids = [row.id for row in found]
    if len(set(ids)) != len(ids):
        raise ValueError(f"rows with one id: {sorted({row for row in ids if ids.count(row) > 1})}")
    return tuple(sorted(found, key=lambda row: ORDERS.index(row.order)))


def compiled_text() -> str:
    """What `rows.json` should hold."""
    return ROWS.dump_json(read_sources(), indent=1, exclude_defaults=True).decode() + "\n"


def _family(family: str) -> tuple[Row, ...]:
    text = (FOLDER / "rows" / f"{family}.toml").read_text("utf-8")
    return ROWS.validate_python([{"family": family, **row} for row in tomllib.loads(text)["rows"]])


if __name__ == "__main__":
    COMPILED.write_text(compiled_text())
