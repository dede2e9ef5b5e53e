"""What a batch may look like for its images to be found, and the bytes that they become."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from sandbox.guest import delivery
from tests.conftest import missing
from tests.sandbox.guest.test_own_graph import Heard

try:
    import torch
except ImportError:
    missing("torch is not installed")

pytestmark = pytest.mark.integration
IMAGES = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).to(torch.uint8)


class Pair(NamedTuple):
    """A batch as some datasets name it."""

    images: Any
    labels: Any


class WithDlpack:
    """An array of another library."""

    def __dlpack__(self, **_):
        return IMAGES.__dlpack__()

    def __dlpack_device__(self):
        return IMAGES.__dlpack_device__()


@pytest.mark.parametrize(
    "batch",
    [
        IMAGES,
        {"label": torch.zeros(2), "data": IMAGES},
        [{"data": IMAGES, "label": torch.zeros(2, 1)}],
        (IMAGES, torch.zeros(2)),
        Pair(IMAGES, torch.zeros(2)),
        IMAGES.numpy(),
        IMAGES.__dlpack__,
        WithDlpack(),
        list(IMAGES),
        (list(IMAGES), [0, 1]),
    ],
    ids=["tensor", "dict", "dali", "pair", "namedtuple", "numpy", "capsule", "dlpack", "samples", "samples_in_pair"],
)
def test_images_are_found(batch):
    """In every form that iterators of DALI and PyTorch have, and in those of other libraries."""
    found = delivery.find_images(batch() if callable(batch) else batch)
    assert torch.equal(found, IMAGES)


@pytest.mark.parametrize("batch", [torch.zeros(2, 3), {"a": 1}, [], None, torch.zeros(0, 3, 4, 4), "text"])
def test_what_holds_no_images_is_said(batch):
    """The learner is told, instead of a batch being counted."""
    with pytest.raises(delivery.NoImages):
        delivery.find_images(batch)


def test_floats_keep_one_scale():
    """Values of a later batch are on the scale of the first one, and what lies outside is cut off, not wrapped."""
    first = torch.linspace(-2.0, 2.0, 2 * 3 * 4 * 4).reshape(2, 3, 4, 4)
    packer = delivery.Packer(first)
    packed = packer.pack(first)
    assert (packed.dtype, packed.shape) == (np.uint8, (2, 3, 4, 4))
    assert 0 < packed.min() < packed.max() < 255
    assert np.all(np.diff(packed.ravel().astype(int)) >= 0)
    assert np.array_equal(packer.pack(first[:1]), packed[:1])
    assert packer.pack(first * 10).max() == 255
    with pytest.raises(delivery.NoImages, match="float32 values, a later one"):
        packer.pack(first.byte())


def test_bytes_stay_as_they_are():
    """Images that are bytes already are sent unchanged."""
    assert np.array_equal(delivery.Packer(IMAGES).pack(IMAGES), IMAGES.numpy())


def test_values_without_a_scale_are_refused():
    """NaN in the first batch leaves nothing to send."""
    with pytest.raises(delivery.NoImages, match="NaN"):
        delivery.Packer(torch.full((1, 3, 2, 2), float("nan")))


def test_a_large_batch_comes_in_parts():
    """A message holds at most 8 MiB of pixels; parts add up to the batch."""
    link = Heard()
    batch = torch.zeros(40, 3, 300, 300, dtype=torch.uint8)
    delivery.deliver(link, iter([batch]), 1)
    *images, end = link.messages
    assert end["kind"] == "delivered"
    assert len(images) > 1
    assert sum(image["shape"][0] for image in images) == 40
    assert all(image["bytes"] == np.prod(image["shape"]) <= 8 << 20 for image in images)
