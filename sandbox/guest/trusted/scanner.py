"""Counts the learner's JPEGs: our code over their files, in a pod without their code, after their code was frozen.

Each file is decoded in a child process; a file that crashes or hangs the decoder costs itself only.
"""

import hashlib
import json
import os
import signal
import stat
import statistics
import time
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..channel import Link
from .jpeg_structure import structure

SUFFIXES = (b".jpg", b".jpeg", b".jpe", b".jfif")
MAX_EXAMPLES = 40
MAX_SIZES = 512
FILE_S = 10
LANES = 2
"""Files that are decoded at the same time. The largest allowed takes 600 MiB with all copies."""
FLAT_SD = 4.0
"""Grey levels; below that a picture has one colour. Noise and gradients have tens."""
SAMPLE = 64
"""Rows and columns whose pixels are looked at for that."""
LOOK = 8
"""Pixels a side of the grey thumbnails that are compared."""


@dataclass
class Caps:
    """What the scan may cost; the host chooses the numbers."""

    entries: int = 300_000
    depth: int = 64
    seconds: float = 120.0
    file_bytes: int = 64 << 20
    pixels: int = 64_000_000
    min_side: int = 32
    enough: int = 1024
    """Stop decoding after this many distinct images: no threshold is higher."""


class Candidate(NamedTuple):
    """A regular file with a JPEG name that is worth opening."""

    path: bytes
    size: int


@dataclass
class Inventory:
    """What the walk and the decoding found."""

    rejected: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, str]] = field(default_factory=list)
    sizes: list[dict[str, int]] = field(default_factory=list)
    distinct: int = 0
    flat: int = 0
    looks: list[tuple[bytes, int]] = field(default_factory=list)
    """Of each counted picture its thumbnail, and the bytes of its file."""
    entries_seen: int = 0
    stopped_early: str | None = None

    def reject(self, path: bytes, reason: str, root: bytes) -> None:
        """Counts a file that is not counted, and keeps the first few as examples."""
        self.rejected[reason] += 1
        if len(self.examples) < MAX_EXAMPLES and self.rejected[reason] <= 5:
            shown = os.path.relpath(path, root).decode("utf-8", "backslashreplace")
            self.examples.append({"path": shown[:190], "reason": reason})


def run(link: Link) -> None:
    """Guest program: one request `scan`, one answer `scanned`."""
    import PIL.Image
    import PIL.JpegImagePlugin

    link.send("ready", versions={"pillow": PIL.__version__})
    request = link.receive()
    link.send("scanned", scan=scan(request["root"], request["allowed_roots"], Caps(**request["caps"])))


def scan(root: str, allowed_roots: list[str], caps: Caps) -> dict[str, Any]:
    """The `Scan` of one folder."""
    real = os.path.realpath(root)
    problem = _root_problem(real, allowed_roots)
    if problem is not None:
        return {"root": root[:190], "problem": problem}
    deadline = time.monotonic() + caps.seconds
    inventory = Inventory()
    top = os.fsencode(real)
    candidates = list(_walk(top, caps, inventory, deadline))
    _decode_all(candidates, top, caps, inventory, deadline)
    return {
        "root": root[:190],
        "distinct": inventory.distinct,
        "flat": inventory.flat,
        "one_picture": saved_again(inventory.looks),
        "rejected": dict(inventory.rejected),
        "examples": inventory.examples,
        "entries_seen": inventory.entries_seen,
        "stopped_early": inventory.stopped_early,
        "sizes": inventory.sizes,
    }


def _root_problem(real: str, allowed_roots: list[str]) -> str | None:
    roots = [os.path.realpath(allowed) for allowed in allowed_roots]
    if not any(real == allowed or real.startswith(allowed + os.sep) for allowed in roots):
        return "outside"
    try:
        mode = os.stat(real).st_mode
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "unreadable"
    return None if stat.S_ISDIR(mode) else "not_a_directory"


def _walk(top: bytes, caps: Caps, inventory: Inventory, deadline: float) -> Iterator[Candidate]:
    """Regular files with JPEG names; links, special files and the rest are counted by reason and never opened."""
    seen: set[tuple[int, int]] = set()
    folders = [(top, 0)]
    while folders:
        folder, depth = folders.pop()
        try:
            with os.scandir(folder) as listing:
                for entry in listing:
                    inventory.entries_seen += 1
                    if inventory.entries_seen >= caps.entries:
                        inventory.stopped_early = "too_many_entries"
                        return
                    if time.monotonic() > deadline:
                        inventory.stopped_early = "deadline"
                        return
                    if entry.is_dir(follow_symlinks=False):
                        if depth < caps.depth:
                            folders.append((entry.path, depth + 1))
                        else:
                            inventory.reject(entry.path, "too_deep", top)
                        continue
                    if entry.is_symlink() and os.path.isdir(entry.path):
                        inventory.reject(entry.path, "symlink", top)  # of a folder: whoever made it should hear of it
                        continue
                    if not entry.name.lower().endswith(SUFFIXES):
                        continue
                    reason, candidate = _classify(entry, seen, caps)
                    if candidate is not None:
                        yield candidate
                    else:
                        inventory.reject(entry.path, reason, top)
        except OSError:
            inventory.reject(folder, "unreadable", top)


def _classify(entry: os.DirEntry[bytes], seen: set[tuple[int, int]], caps: Caps) -> tuple[str, Candidate | None]:
    if entry.is_symlink():
        return "symlink", None
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return "unreadable", None
    reason = ""
    if not stat.S_ISREG(status.st_mode):
        reason = "special_file"
    elif (status.st_dev, status.st_ino) in seen:
        reason = "hard_link"
    elif status.st_size == 0:
        reason = "empty"
    elif status.st_size > caps.file_bytes:
        reason = "file_too_large"
    if reason:
        return reason, None
    seen.add((status.st_dev, status.st_ino))
    return "", Candidate(entry.path, status.st_size)


def _decode_all(candidates: list[Candidate], top: bytes, caps: Caps, found: Inventory, deadline: float) -> None:
    files: set[str] = set()
    pictures: set[str] = set()
    lanes = [_decoded(candidates[first::LANES], caps) for first in range(LANES)]
    try:
        for number, candidate in enumerate(candidates):
            if found.distinct >= caps.enough:
                found.stopped_early = found.stopped_early or "enough"
                return
            result = next(lanes[number % LANES])
            reason = str(result.get("reason", ""))
            if not reason and result["file"] in files:
                reason = "copy"
            if not reason and result["picture"] in pictures:
                reason = "same_pixels"
            if reason:
                found.reject(candidate.path, reason, top)
            else:
                files.add(result["file"])
                pictures.add(result["picture"])
                found.distinct += 1
                found.flat += result["flat"]
                found.looks.append((bytes.fromhex(result["look"]), candidate.size))
                if len(found.sizes) < MAX_SIZES:
                    found.sizes.append(
                        {"width": result["width"], "height": result["height"], "size_bytes": candidate.size}
                    )
            if time.monotonic() > deadline:
                found.stopped_early = "deadline"
                return
    finally:
        for lane in lanes:
            lane.close()


def _decoded(candidates: list[Candidate], caps: Caps) -> Generator[dict[str, Any]]:
    """One result per file, in order."""
    position = 0
    while position < len(candidates):
        for result in _decode_in_child(candidates[position:], caps):
            position += 1
            yield result
        if position < len(candidates):
            position += 1  # the child ended before it answered for this file: the decoder crashed or was stopped on it
            yield {"reason": "decoder_crashed"}


def _decode_in_child(candidates: list[Candidate], caps: Caps) -> Iterator[dict[str, Any]]:
    """One result per file, in order, until the child ends."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # no handler: the alarm ends this child, and with it one file
        with os.fdopen(write_end, "w") as out:
            for candidate in candidates:
                signal.alarm(FILE_S)
                result = inspect_file(candidate.path, caps)
                signal.alarm(0)  # from here on it may have to wait until somebody reads
                out.write(json.dumps(result) + "\n")
                out.flush()
        os._exit(0)
    os.close(write_end)
    try:
        with os.fdopen(read_end) as results:
            for line in results:
                if line.endswith("\n"):
                    yield json.loads(line)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def inspect_file(path: bytes, caps: Caps) -> dict[str, Any]:
    """Decodes one file fully; `reason` is set when it is no usable JPEG."""
    import PIL.Image
    import PIL.ImageStat

    PIL.Image.MAX_IMAGE_PIXELS = None  # our own cap, on the header, comes first
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {"reason": "unreadable"}
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(caps.file_bytes + 1)
        file.seek(0)
        if not data.startswith(b"\xff\xd8\xff"):
            return {"reason": "not_jpeg"}
        try:
            image = PIL.Image.open(file, formats=("JPEG",))
        except Exception:
            return {"reason": "undecodable"}
        width, height = image.size
        if width * height > caps.pixels:
            return {"reason": "too_many_pixels"}
        if min(width, height) < caps.min_side:
            return {"reason": "too_small"}
        markers = structure(data)
        if not markers.ended or markers.starved:
            # libjpeg invents the rest of a picture whose end is missing; a person would call the file broken.
            return {"reason": "truncated"}
        try:
            image.load()
            picture = hashlib.sha256(f"{image.mode}{width}x{height}".encode() + image.tobytes()).hexdigest()
            look = image.resize((LOOK, LOOK), PIL.Image.Resampling.BOX).convert("L").tobytes().hex()
            sample = image.resize((SAMPLE, SAMPLE), PIL.Image.Resampling.NEAREST)
            flat = max(PIL.ImageStat.Stat(sample).stddev) < FLAT_SD
        except OSError as error:
            return {"reason": "truncated" if "truncated" in str(error) else "undecodable"}
        except Exception:
            return {"reason": "undecodable"}
    digest = hashlib.sha256(data).hexdigest()
    return {"file": digest, "picture": picture, "width": width, "height": height, "look": look, "flat": flat}


def saved_again(looks: list[tuple[bytes, int]]) -> int:
    """How many look like the middle of all pictures, in files of very different sizes: one, saved again and again.

    Noise has no middle that anything looks like; shapes, gradients and photos differ from theirs by far more.
    """
    middle = [statistics.median_low(column) for column in zip(*(look for look, _ in looks), strict=True)]
    mean = sum(middle) / LOOK**2
    spread = sum(abs(grey - mean) for grey in middle)
    if spread < 2 * LOOK**2:
        return 0
    apart = [sum(abs(a - b) for a, b in zip(look, middle, strict=True)) for look, _ in looks]
    like = sorted(size for (_, size), far in zip(looks, apart, strict=True) if far < spread / 40)
    return len(like) if like and like[-1 - len(like) // 4] > 1.2 * like[len(like) // 4] else 0
