"""Delivers the guest package into a run's folder: the runner copies these files and never imports them."""

import os
import py_compile
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

GUEST_SOURCE = Path(__file__).parent / "guest"
PACKAGE = "grader_guest"
"""Its import name inside a pod; unusual, so that a learner's own modules do not collide with it."""


def install_guest_code(folder: Path) -> None:
    """Writes the guest's files to `folder/grader_guest`, readable by the pod's uid.

    Beside each source lies its bytecode, which a pod whose Python is of this one's version need not make again; every
    other Python passes it over.
    """
    package = folder / PACKAGE
    for place in (folder, *(package / name for name in sorted({path.parent for path in _files()}))):
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o755)
    for relative, content in _files().items():
        # Before every run, a hundred files: by descriptors it takes half as long.
        descriptor = os.open(package / relative, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(descriptor, 0o644)


@cache
def _files() -> Mapping[Path, bytes]:
    """Every file by its place in the package; read once."""
    found: dict[Path, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(sorted(GUEST_SOURCE.rglob("*.py"))):
            relative = path.relative_to(GUEST_SOURCE)
            found[relative] = path.read_bytes()
            # Unchecked: the source beside it is the one that it was made of, whatever time its copy bears.
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            made = py_compile.compile(
                str(path), f"{folder}/{number}", str(relative), doraise=True, invalidation_mode=mode
            )
            assert made is not None  # noqa: S101 - what cannot be compiled has been raised
            found[Path(cache_from_source(str(relative)))] = Path(made).read_bytes()
    if not found:
        raise FileNotFoundError(f"the guest's code is not in {GUEST_SOURCE}; the package is installed in part")
    return found
