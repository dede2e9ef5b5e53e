"""How full the file systems are on which a worker keeps its folders."""

import os
from collections.abc import Mapping
from pathlib import Path


def disk_use(folders: Mapping[str, Path]) -> dict[str, float]:
    """How much of each folder's file system is used, as `df` counts: of its bytes or its inodes, whichever is more.

    Args:
        folders: by name; where one is not there yet, the nearest folder above it is looked at.

    Returns:
        Ratios from 0 to 1; those that cannot be looked at are absent.
    """
    found = {}
    for name, folder in folders.items():
        try:
            found[name] = _used(folder)
        except OSError:  # whoever needs the folder says what is wrong with it
            continue
    return found


def _used(folder: Path) -> float:
    at = os.statvfs(next(path for path in (folder, *folder.absolute().parents) if path.exists()))
    # What only root may still write counts for neither side.
    return max(
        _ratio(at.f_blocks - at.f_bfree, at.f_bavail),
        _ratio(at.f_files - at.f_ffree, at.f_favail),
    )


def _ratio(used: int, free: int) -> float:
    """Some file systems count no inodes."""
    return used / (used + free) if used + free else 0.0
