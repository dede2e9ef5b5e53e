"""The largest inputs that the limits let through, made to cost the most: a second or two, and no more than 256 MiB.

Each runs in a process of its own, so that what it takes at its peak can be told.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grader_service.measure import delivery
from tests.factories import a_discovery
from tests.fuzz import pods
from tests.fuzz.planting import _envelopes, _messages
from tests.fuzz.readers import MOST_MIB, MOST_SECONDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SAID = a_discovery().model_dump(mode="json")
MANY = 650_000
"""Empty objects that fit into the 2 MiB of a frame."""
READY = {"kind": "ready", "versions": {}}
KEYS = {f"K{number}": 1 for number in range(180_000)}
PLAY = """
import resource, sys
from tests.fuzz.readers import READERS
reader = READERS[sys.argv[1]]
read = reader.load()
for path in reader.seeds():
    read(path.read_bytes())
print(type(read(sys.stdin.buffer.read())).__name__)
"""


def discovered(**changes):
    return ("discovery", [{"kind": "discovered", "discovery": {**SAID, **changes}, "graph_sizes": []}])


def enveloped(submission):
    return ("envelope", {**next(iter(_envelopes())), "body": [[], {"submission": submission}, {}]})


MESSAGE = next(iter(_messages()))
CASES = {
    "loaders of nothing": discovered(loaders=[{}] * MANY),
    "as many loaders as a frame takes": discovered(loaders=[{}] * 60_000),
    "notes that are numbers": discovered(notes=[1] * 190_000),
    "items that are numbers": discovered(where_dali_wins={"status": "present", "items": [1] * 190_000}),
    "keys of another form": discovered(versions=KEYS),
    "unknown keys": discovered(**KEYS),
    "one long text": discovered(needs_gpu="\x1b" * 300_000),
    "sizes that are texts": ("discovery", [{"kind": "discovered", "discovery": SAID, "graph_sizes": ["a"] * 190_000}]),
    "operators of nothing": ("dialogue", ["carry", READY, {"kind": "prepared", "graph": {"operators": [{}] * 60_000}}]),
    "observations of lists": (
        "dialogue", ["probe", {"kind": "probed", "status": "ok", "text": "", "observations": {"a": [[]] * 60_000}}]
    ),
    "cells of nothing": ("opener", {"entry": "x", "cells": [[]] * MANY}),
    "steps that are numbers": enveloped({**MESSAGE, "steps": [1] * 90_000}),
    "too many steps": enveloped({**MESSAGE, "steps": [1] * 1_000_000}),
    "a message of keys": enveloped(KEYS),
    "an address of 2 KiB": enveloped({**MESSAGE, "artifact": {"filename": "a.py", "uri": "https://" + "[" * 2000}}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_cost(case):
    """The child's own watch ends it when a limit is passed."""
    name, value = CASES[case]
    played = subprocess.run(
        [sys.executable, "-c", PLAY, name],
        cwd=ROOT, input=json.dumps(value, separators=(",", ":")).encode(), capture_output=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert played.returncode == 0, f"more than {MOST_SECONDS} s or {MOST_MIB} MiB: {played.stderr.decode()[-600:]}"


def test_images_of_many_channels():
    """An image of two pixels with 16,384 channels costs the host four means, and not 64 KiB for 32 KiB that came."""
    said = [{"kind": "images", "shape": [4, 2, 1, 16384], "blob": 8 * 16384}] * 8 + [{"kind": "delivered"}]
    arrival = delivery.receive(pods._pod(json.loads(json.dumps(said))), 5.0, most_images=64)
    assert arrival.content.means.shape == (32, 4)


def test_copies_of_large_images():
    """However large images are, the copies of one window stay below a fixed size."""
    said = [{"kind": "images", "shape": [1, 1024, 1024, 1], "blob": 1 << 20}] * 30
    said += [{"kind": "images", "shape": [1, 256, 256, 1], "blob": 1 << 16}] * 30 + [{"kind": "delivered"}]
    arrival = delivery.receive(pods._pod(json.loads(json.dumps(said))), 5.0, most_images=64)
    assert arrival.images == 60
    assert 1 <= len(arrival.content.copies) <= delivery.COPIES
    assert sum(pixels.nbytes for _, pixels in arrival.content.copies) <= delivery._COPY_BYTES
