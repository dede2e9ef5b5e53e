"""Tier A: real graphs in a real clean room, on held-out images; what they delivered is told from the pixels."""

import subprocess
import sys
from pathlib import Path

import pytest

from grader_service.grading import clean_room
from grader_service.grading.arms import ArmLost
from grader_service.grading.graph_content import collect, prove_graph
from grader_service.grading.learner import Found
from grader_service.held_out.plan import new_seed, plan_shard
from grader_service.held_out.shards import make_shard
from grader_service.host import usable_cpus
from grader_service.model.measurement import ContentKind
from sandbox.api import PodRole, PodSpec, SpaceLimits
from tests.factories import a_discovery, a_pipeline
from tests.services.forked_runner import ForkedRunner

pytestmark = [pytest.mark.integration, pytest.mark.slow]

GRAPHS = Path(__file__).with_name("graphs.py")
IMAGES = 96


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Folder with one serialized graph per definition in `graphs.py`."""
    folder = tmp_path_factory.mktemp("graphs")
    subprocess.run([sys.executable, str(GRAPHS), str(folder)], check=True, timeout=120, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A clean room and the images that it reads: one graph after another may be carried into it."""
    cpus = usable_cpus(2)
    runner = ForkedRunner(tmp_path_factory.mktemp("state"))
    with runner.open_run("room", SpaceLimits(512, 10_000, 256)) as space:
        plan = plan_shard(new_seed(), (), IMAGES)
        files = [f"{space.paths.shards}/{name}" for name in make_shard(plan, space.shards_dir)]
        pod = space.start(
            PodSpec(
                role=PodRole.CLEAN_ROOM, program="trusted.clean_room", memory_mib=4096, pids=256, cpus=cpus, shards=True
            )
        )
        clean_room.await_ready(pod)

        def deliver(graph: bytes):
            found = Found(a_discovery(pipelines=(a_pipeline(graph=0),)), (graph,))
            carried = clean_room.carry(pod, found, files, len(cpus), "cpu")
            assert isinstance(carried, clean_room.Carried), carried
            for _ in range(3):
                assert not isinstance(carried.arm.window(6, timeout_s=60.0), ArmLost)
            return prove_graph(collect(carried, IMAGES), carried, plan, len(cpus))

        yield deliver


@pytest.mark.parametrize("name", ["lab", "whole_uint8", "half_precision", "blue_first", "colours", "grey"])
def test_honest_graphs_deliver_the_shard(room, graphs, name):
    """Every image is known, each came once per epoch, and the audited ones are full decodes."""
    proof = room((graphs / name).read_bytes())
    assert proof.problem is None
    assert proof.kind is ContentKind.FULL
    assert proof.identified == proof.delivered >= 3 * 96
    assert proof.distinct == IMAGES
    assert proof.repeated == proof.failed_audits == 0
    assert proof.audited >= 24
    assert proof.texture > 0.9


@pytest.mark.parametrize("name", ["blurred", "turned", "per_image", "mixed_up", "postage_stamps"])
def test_what_hides_an_image_is_not_held_against_the_graph(room, graphs, name):
    """An augmentation that takes the fine texture away is allowed; it is said that nothing was seen."""
    proof = room((graphs / name).read_bytes())
    assert proof.problem is None
    assert proof.kind in (ContentKind.UNKNOWN, ContentKind.COARSE, ContentKind.FULL)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("thumbnail", "partial_decode"),
        ("hidden_thumbnail", "partial_decode"),
        ("tiny_window", "small_area"),
        ("one_for_all", "repeated_images"),
    ],
)
def test_graphs_that_deliver_less_than_they_read(room, graphs, name, problem):
    """(D06, D07, D08, D11, D13) The reason is named."""
    assert room((graphs / name).read_bytes()).problem == problem


@pytest.mark.parametrize("name", ["noise", "noise_in_disguise"])
def test_noise_is_no_image(room, graphs, name):
    """(D07) Random numbers of the right shape: whatever images they are taken for, they do not count."""
    problems = ("colours_changed", "not_identified", "no_colour", "repeated_images", "rendered")
    assert room((graphs / name).read_bytes()).problem in problems
