"""The scanner's pod: an inventory of the learner's JPEGs, taken while the learner's pod is frozen or gone."""

from typing import Literal

from grader_service.model.base import Wire
from grader_service.model.evidence import ENOUGH_IMAGES, Scan
from grader_service.run.dialogue import Ready, ask, hear, parse, trusted
from sandbox.api import GuestPaths, Pod

SCAN_S = 120.0
_CAPS = {
    "entries": 300_000,
    "depth": 64,
    "seconds": SCAN_S,
    "file_bytes": 64 << 20,
    "pixels": 64_000_000,
    "min_side": 32,
}


class Scanned(Wire):
    """The inventory."""

    kind: Literal["scanned"]
    scan: Scan


def scan(pod: Pod, root: str, paths: GuestPaths, enough: int = ENOUGH_IMAGES) -> Scan:
    """Counts the JPEGs below `root`, which must lie in a folder that the learner may write or was given.

    Args:
        paths: of the learner's pod.
        enough: distinct images after which counting may end.

    Raises:
        SandboxUnavailable: the scanner's pod ended.
    """
    trusted(parse(pod, hear(pod, 60.0), Ready), pod)
    request = {
        "kind": "scan",
        "root": root,
        "allowed_roots": [paths.workspace, paths.tmp, paths.shm, paths.lab_data],
        "caps": {**_CAPS, "enough": enough},
    }
    message = ask(pod, request, timeout_s=SCAN_S + 30.0)
    return trusted(parse(pod, message, Scanned), pod).scan
