"""Delivers the guest package into a run's folder: the runner copies these files and never imports them."""

import hashlib
import shutil
from pathlib import Path

GUEST_SOURCE = Path(__file__).parent / "guest"
PACKAGE = "grader_guest"
"""Its import name inside a pod; unusual, so that a learner's own modules do not collide with it."""


def install_guest_code(folder: Path) -> None:
    """Copies the guest's `.py` files to `folder/grader_guest`, readable by the pod's uid."""
    shutil.copytree(GUEST_SOURCE, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", "README.md"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def guest_digest() -> str:
    """SHA-256 over the names and bytes of the guest's files, hexadecimal."""
    digest = hashlib.sha256()
    for path in sorted(GUEST_SOURCE.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(GUEST_SOURCE)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
