"""Real decoders on real files: torchvision and DALI are known as honest and their images are named, all of them."""

import importlib.util

import numpy as np
import pytest

from grader_service.held_out.audit import audit_image
from grader_service.held_out.figures import figures
from grader_service.held_out.identity import Identifier
from grader_service.held_out.plan import ShardPlan
from grader_service.held_out.proof import prove
from grader_service.held_out.reference import decode
from grader_service.held_out.shards import make_shard
from grader_service.model.measurement import ContentKind
from tests.held_out import loaders
from tests.held_out.factories import SEED

pytestmark = [pytest.mark.slow, pytest.mark.integration]

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
    return plan, [folder / name for name in make_shard(plan, folder)]


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
    proof = prove(audits, figures(found, IMAGES))
    assert (proof.problem, proof.distinct, proof.failed_audits) == (None, IMAGES, 0)
    assert proof.texture > 0.9


def test_shuffled_dali_epochs_repeat_nothing(shard):
    """DALI's shuffle buffer, whatever its size, brings no image twice within an epoch."""
    from nvidia.dali import fn, pipeline_def

    @pipeline_def(batch_size=24, num_threads=2, device_id=None, seed=3)
    def build(names):
        encoded, _ = fn.readers.file(files=names, random_shuffle=True, initial_fill=16, name="reader")
        return fn.resize(fn.decoders.image(encoded), resize_x=64, resize_y=64)

    plan, paths = shard
    pipe = build([str(path) for path in paths])
    pipe.build()
    images = np.concatenate([np.asarray(pipe.run()[0].as_array()) for _ in range(11)])
    found = Identifier(plan).identify_means(images.mean(axis=(1, 2)))
    counted = figures(found, IMAGES)
    assert (counted.identified, counted.distinct, counted.repeated) == (264, IMAGES, 0)
