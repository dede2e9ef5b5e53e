"""325 honest chains of crops and resizes on images of every kind: no problem with any of them."""

from functools import partial

import pytest

from sandbox.guest.trusted.experiments import examine
from tests.measure.geometry import chains, examined, write_images

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_GROUPS = 13


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """JPEG files of many sizes, modes and orientations."""
    return write_images(tmp_path_factory.mktemp("images"))


@pytest.mark.parametrize("group", range(_GROUPS))
def test_nobody_is_accused(images, group):
    """Twenty-five chains at a time; every image follows its file, and no window is too small."""
    here = partial(examine, pytest.fail)
    proofs = {name: examined(name, chain, images, "cpu", here) for name, chain in list(chains())[group::_GROUPS]}
    assert {name: proof.note for name, proof in proofs.items() if proof.problem is not None} == {}
