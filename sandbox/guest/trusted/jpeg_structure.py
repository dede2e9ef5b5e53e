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
_EOI, _SOS, _DHT, _BLOCK = 0xD9, 0xDA, 0xC4, 8
_AC_SYMBOLS = 4
"""A block that does not say where it ends has 63 coefficients, and a symbol skips 15 of them at most."""


class Structure(NamedTuple):
    """What the markers say."""

    ended: bool
    """Whether the end of the image is there, wherever in the file; what follows it is no matter."""
    starved: bool
    """Whether the scans are shorter than any picture of this size can be."""


def structure(data: bytes) -> Structure:
    """Walks the markers of one file; what is no JPEG has no end."""
    place, scan_bytes, least_bits = 2, 0, 0
    blocks: dict[int, int] = {}
    tables: dict[int, int] = {}
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
            return Structure(ended=True, starved=scan_bytes * 8 < least_bits)
        if code in _ALONE:
            continue
        if place + 2 > len(data):
            return Structure(ended=False, starved=False)
        (length,) = struct.unpack_from(">H", data, place)
        segment = data[place + 2 : place + length]
        if code in _SEQUENTIAL:
            blocks = _blocks(segment)
        elif code == _DHT:
            tables |= _least_bits(segment)
        place += max(2, length)
        if code == _SOS:
            least_bits += _least_of_scan(segment, blocks, tables)
            found = _MARKER_IN_SCAN.search(data, place)
            if found is None:
                return Structure(ended=False, starved=False)
            scan_bytes += found.start() - place
            place = found.start()


def _blocks(frame: bytes) -> dict[int, int]:
    """Component → blocks of a frame of this size and sampling, padding left out; empty for a frame that is cut off."""
    if len(frame) < 6:
        return {}
    height, width, components = struct.unpack_from(">HHB", frame, 1)
    told = [frame[6 + 3 * number : 9 + 3 * number] for number in range(components)]
    sampling = {one[0]: one[1] for one in told if len(one) == 3}
    most_x = max((one >> 4 for one in sampling.values()), default=1) or 1
    most_y = max((one & 15 for one in sampling.values()), default=1) or 1
    return {
        name: _ceil(_ceil(width * (one >> 4), most_x), _BLOCK) * _ceil(_ceil(height * (one & 15), most_y), _BLOCK)
        for name, one in sampling.items()
    }


def _ceil(whole: int, part: int) -> int:
    return -(-whole // part)


def _least_bits(segment: bytes) -> dict[int, int]:
    """Class and number of each Huffman table → the fewest bits that a block needs of it."""
    found = {}
    place = 0
    while place + 17 <= len(segment):
        name, counts = segment[place], segment[place + 1 : place + 17]
        place += 17
        symbols = segment[place : place + sum(counts)]
        place += sum(counts)
        lengths = [bits for bits, count in enumerate(counts, 1) for _ in range(count)][: len(symbols)]
        if not lengths:
            continue
        if name >> 4:  # AC: the symbol that ends the block, or as many as reach its last coefficient
            ends = [bits for bits, symbol in zip(lengths, symbols, strict=True) if symbol == 0]
            found[name] = min([*ends, _AC_SYMBOLS * lengths[0]])
        else:  # DC: a symbol says how many bits follow it
            found[name] = min(bits + (symbol & 15) for bits, symbol in zip(lengths, symbols, strict=True))
    return found


def _least_of_scan(scan: bytes, blocks: dict[int, int], tables: dict[int, int]) -> int:
    """The fewest bits that the components of a scan can have, each block with a DC and an AC part of a bit at least."""
    bits = 0
    for number in range(scan[0] if scan else 0):
        told = scan[1 + 2 * number : 3 + 2 * number]
        if len(told) == 2:
            dc, ac = told[1] >> 4, 0x10 | told[1] & 15
            bits += blocks.get(told[0], 0) * (tables.get(dc, 1) + tables.get(ac, 1))
    return bits
