"""Where a JPEG ends and how much of it is picture, from its markers alone (ITU-T T.81, annex B).

Decoders are lenient: libjpeg invents what is missing and says so in a warning that Pillow does not pass on.
"""

import re
import struct
from typing import NamedTuple

_MARKER_IN_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]", re.DOTALL)
"""What ends entropy-coded data: neither a stuffed zero nor a restart marker; fill bytes may stand before it."""
_SEQUENTIAL = (0xC0, 0xC1)
"""Frames whose scans hold each block once, Huffman-coded."""
_ALONE = (0x01, *range(0xD0, 0xD9))
"""Markers without a length."""
_SOI, _EOI, _SOS, _BLOCK = 0xD8, 0xD9, 0xDA, 8
_LEAST_BITS_PER_BLOCK = 2
"""One for the difference of its mean, one for the end of the block: no Huffman code is shorter than a bit."""


class Structure(NamedTuple):
    """What the markers say."""

    ended: bool
    """Whether the end of the image is there, wherever in the file; what follows it is no matter."""
    starved: bool
    """Whether the scans are shorter than any picture of this size can be."""


def structure(data: bytes) -> Structure:
    """Walks the markers of one file; what is no JPEG has no end."""
    place, scan_bytes, least_bytes = 2, 0, 0
    while True:
        start = data.find(b"\xff", place)
        if start < 0 or start + 1 >= len(data):
            return Structure(ended=False, starved=False)
        code = data[start + 1]
        if code == 0xFF:
            place = start + 1
            continue
        place = start + 2
        if code == _EOI:
            return Structure(ended=True, starved=scan_bytes < least_bytes)
        if code in _ALONE:
            continue
        if place + 2 > len(data):
            return Structure(ended=False, starved=False)
        (length,) = struct.unpack_from(">H", data, place)
        if code in _SEQUENTIAL:
            least_bytes = _least_bytes(data[place + 2 : place + length])
        place += max(2, length)
        if code == _SOS:
            found = _MARKER_IN_SCAN.search(data, place)
            if found is None:
                return Structure(ended=False, starved=False)
            scan_bytes += found.start() - place
            place = found.start()


def _least_bytes(frame: bytes) -> int:
    """The fewest bytes that the scans of a frame of this size and sampling can have."""
    if len(frame) < 6:
        return 0
    height, width, components = struct.unpack_from(">HHB", frame, 1)
    sampling = [frame[6 + 3 * number + 1] for number in range(components) if 6 + 3 * number + 1 < len(frame)]
    if not sampling:
        return 0
    most_x, most_y = max(one >> 4 for one in sampling) or 1, max(one & 15 for one in sampling) or 1
    blocks = 0
    for one in sampling:
        wide = -(-width * (one >> 4) // most_x)
        high = -(-height * (one & 15) // most_y)
        blocks += -(-wide // _BLOCK) * -(-high // _BLOCK)
    return blocks * _LEAST_BITS_PER_BLOCK // 8
