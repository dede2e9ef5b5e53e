"""Versions of container software below which escapes are known; what `grader doctor` warns about.

Sources: the change logs of runc and of the NVIDIA container toolkit.
"""

import re

RUNC_MENDED = ((1, 3, 6), (1, 4, 3), (1, 5, 0))
"""First release of each line that mends CVE-2025-31133, CVE-2025-52565, CVE-2025-52881 and CVE-2026-41579."""
TOOLKIT_MENDED = (1, 17, 8)
"""Mends CVE-2024-0132, CVE-2025-23266 and CVE-2025-23267."""
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def version_in(text: str) -> tuple[int, int, int] | None:
    """The first `major.minor.patch` of a text, as numbers; None where there is none."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def runc_is_vulnerable(version: tuple[int, int, int]) -> bool:
    """Whether escapes from this release of runc are known; distributions may have mended an older one."""
    line = next((mended for mended in RUNC_MENDED if mended[:2] == version[:2]), None)
    return version < (line or RUNC_MENDED[-1])


def toolkit_is_vulnerable(version: tuple[int, int, int]) -> bool:
    """Whether escapes through this release of the NVIDIA container toolkit are known."""
    return version < TOOLKIT_MENDED
