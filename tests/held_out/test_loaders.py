"""Real decoders on real files: torchvision and DALI are known as honest and their images are named, all of them."""

import importlib.util

import numpy as np
import pytest

from grader_service.held_out.audit import audit_image
from grader_service.held_out.identity import Identifier
from grader_service.held_out.plan import ShardPlan
from grader_service.held_out.proof import Figures, prove
from grader_service.held_out.reference import decode
from grader_service.held_out.shards import PendingShard
from grader_service.model.measurement import ContentKind
from tests.held_out import loaders
from tests.held_out.factories import SEED

# torchvision 0.29 says so of its decoders, which learners' loaders use all the same.
_DEPRECATED = "ignore:The image decoding and encoding capabilities of TorchVision are deprecated"
pytestmark = [pytest.mark.slow, pytest.mark.integration, pytest.mark.filterwarnings(_DEPRECATED)]

IMAGES = 64
AUDITED = 12
LAB = all(importlib.util.find_spec(name) for name in ("torch", "torchvision", "nvidia"))
# Without the lab's packages there is no parameter, and pytest says that it skips.
NAMES = {crops: list(loaders.known("cpu", crops=crops)) if LAB else [] for crops in (False, True)}


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """Files of two sizes, and their plan."""
    folder = tmp_path_factory.mktemp("shard")
    plan = ShardPlan(SEED, ((500, 375), (333, 300)) * (IMAGES // 2))
    return plan, [folder / name for name in PendingShard(plan, folder).names()]


@pytest.mark.parametrize(("crops", "name"), [(crops, name) for crops, names in NAMES.items() for name in names])
def test_a_real_loader_is_proved_honest(shard, crops, name):
    """Each image is named and each audit passes, for any type, layout, normalisation and resize."""
    plan, paths = shard
    delivered = loaders.known("cpu", crops=crops)[name](paths)
    planar = [image if image.shape[0] == 3 else np.moveaxis(image, 2, 0) for image in delivered]
    means = np.array([image.astype(np.float32)[:, ::4, ::4].mean(axis=(1, 2)) for image in planar])
    found = Identifier(plan).identify_means(means)
    assert (found.ids == np.arange(IMAGES)).all()
    chosen = np.random.default_rng(0).permutation(IMAGES)[:AUDITED]
    audits = [audit_image(delivered[index], decode(paths[index].read_bytes())) for index in chosen]
    assert {audit.kind for audit in audits} == {ContentKind.FULL}
    proof = prove(audits, Figures(delivered=IMAGES, identified=IMAGES, distinct=IMAGES, stale=0))
    assert (proof.problem, proof.distinct, proof.failed_audits) == (None, IMAGES, 0)
    assert proof.texture > 0.9
