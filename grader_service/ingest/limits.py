"""How much a submission may be; every number here has a rejection code."""

from dataclasses import dataclass


@dataclass(frozen=True)
class IngestLimits:
    """Limits on one artifact, in bytes where not said otherwise."""

    artifact_bytes: int = 256 << 20
    source_bytes: int = 4 << 20
    """One module or notebook without its outputs; larger ones are data, not source."""
    notebook_bytes: int = 64 << 20
    """A notebook as stored: outputs with figures may be large."""
    unpacked_bytes: int = 1 << 30
    members: int = 20_000
    depth: int = 32
    name_bytes: int = 240
    """One file's or folder's name, as UTF-8."""
    path_bytes: int = 1024
    """A name with its folders, as UTF-8; far below what a file system takes, whatever folder it is unpacked in."""
    cells: int = 2000
    worker_memory_bytes: int = 768 << 20
    worker_cpu_s: int = 60
    worker_wall_s: int = 120
