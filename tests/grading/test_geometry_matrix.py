"""325 honest chains of crops and resizes on images of every kind: no problem with any of them."""

import random

import numpy as np
import pytest
from nvidia.dali import pipeline_def
from PIL import Image

from grader_service.grading import acceptance
from sandbox.guest.graph import edit, model
from sandbox.guest.graph.edit import Budget
from sandbox.guest.trusted.clean_room import build
from sandbox.guest.trusted.experiments import examine
from tests.grading.geometry import chains

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_KINDS = (
    ("RGB", (500, 375)), ("RGB", (375, 500)), ("RGB", (640, 480)), ("L", (500, 375)), ("CMYK", (500, 375)),
    ("turned", (480, 320)), ("RGB", (100, 133)), ("RGB", (133, 100)), ("RGB", (1600, 1200)), ("RGB", (320, 240)),
    ("RGB", (1000, 250)), ("RGB", (4000, 3000)),
)  # fmt: skip
_GROUPS = 13


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """JPEG files of many sizes, modes and orientations."""
    folder = tmp_path_factory.mktemp("images")
    generator = np.random.default_rng(1)
    files, sizes = [], []
    for number, (kind, (width, height)) in enumerate(_KINDS):
        mode = "RGB" if kind == "turned" else kind
        coarse = generator.integers(0, 255, (height // 8 + 1, width // 8 + 1, len(Image.new(mode, (1, 1)).getbands())))
        pixels = np.kron(coarse, np.ones((8, 8, 1)))[:height, :width] + generator.integers(-20, 20, (height, width, 1))
        pixels = np.clip(pixels, 0, 255).astype(np.uint8)
        image = Image.fromarray(pixels[:, :, 0] if mode == "L" else pixels, mode=mode)
        exif = Image.Exif()
        if kind == "turned":
            exif[0x0112] = 6
        path = folder / f"{number}.jpg"
        image.save(path, quality=90, exif=exif)
        files.append(str(path))
        sizes.append((width, height))
    return files, sizes


@pytest.mark.parametrize("group", range(_GROUPS))
def test_nobody_is_accused(images, group):
    """Twenty-five chains at a time; every image follows its file, and no window is too small."""
    problems = {}
    for name, chain in list(chains())[group::_GROUPS]:
        # The largest takes as long as all others together, so not every chain has it.
        files, sizes = images if "224 px, linear" in name else (part[:-1] for part in images)
        pipeline = pipeline_def(chain)(batch_size=16, num_threads=2, device_id=None, seed=3)
        graph = model.read(pipeline.serialize())
        edit.prune(graph)
        edit.check(graph)
        shuffled = random.sample(files, len(files))
        edit.repoint(graph, shuffled, list(range(len(files))))
        edit.restrain(graph, Budget(2))
        found = examine(graph, 0, shuffled, build, "cpu", 2)
        found.pop("sizes", None)
        proof = acceptance.judge(acceptance.Observed(**found), sizes)
        if proof.problem is not None:
            problems[name] = (proof.problem, proof.note)
    assert problems == {}
