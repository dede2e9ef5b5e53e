"""325 honest chains of crops and resizes on images of every kind: no problem with any of them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.grading.geometry import chains, examined, write_images

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_GROUPS = 13


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """JPEG files of many sizes, modes and orientations."""
    return write_images(tmp_path_factory.mktemp("images"))


@pytest.mark.parametrize("group", range(_GROUPS))
def test_nobody_is_accused(images, group):
    """Twenty-five chains at a time; every image follows its file, and no window is too small."""
    with ThreadPoolExecutor(1) as cpu:
        proofs = {name: examined(name, chain, images, "cpu", cpu) for name, chain in list(chains())[group::_GROUPS]}
    assert {name: proof.note for name, proof in proofs.items() if proof.problem is not None} == {}
