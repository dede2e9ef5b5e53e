"""Tier A: real graphs run on other pictures, as in the clean room; honest ones have no problem, others have theirs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grader_service.grading.acceptance import Observed, judge
from grader_service.held_out.plan import ShardPlan
from grader_service.held_out.shards import make_shard
from tests.held_out.factories import SEED

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SIZES = ((256, 192), (192, 256), (240, 192)) * 16


@pytest.fixture(scope="module")
def examined(tmp_path_factory):
    """What was found of each graph of `graphs.py`, and the plan of the reference beside it, by the graph's name."""
    folder = tmp_path_factory.mktemp("shard")
    make_shard(ShardPlan(SEED, SIZES), folder)
    command = [sys.executable, "-m", "tests.grading.examining", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def judged(examined, name):
    return judge(Observed.model_validate(examined[name]["found"]), SIZES)


@pytest.mark.parametrize(
    "name",
    [
        "lab", "whole_uint8", "half_precision", "blue_first", "luma_first", "grey", "colours", "blurred", "turned",
        "per_image", "per_batch", "mixed_up", "resized_crop", "generated_window", "computed_shorter", "mirrored",
        "conditional", "erased", "grid_mask", "jpeg_distortion", "equalized", "thumbnail", "postage_stamps", "noisy",
        "all_three", "now_and_then", "idle", "for_nothing", "on_a_thumbnail",
    ],
)  # fmt: skip
def test_honest_graphs_have_no_problem(examined, name):
    """Whatever they do with images that they decoded: every image is its own file's, and is that of the whole file."""
    proof = judged(examined, name)
    assert (proof.problem, proof.note) == (None, "")
    assert proof.own == proof.alike == proof.samples == 48


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("noise", "independent"),
        ("noise_in_disguise", "independent"),
        ("noise_beside_an_image", "independent"),
        ("stamp", "independent"),
        ("one_for_all", "unclear"),
        ("neighbours", "unclear"),
        ("shuffled", "unclear"),
        ("tiny_window", "lesser"),
        ("computed_tiny_window", "lesser"),
        ("top_rows", "lesser"),
        ("top_half", "lesser"),
        ("permuted_number", "not_examined"),
        ("named_files", "not_examined"),
    ],
)
def test_graphs_that_only_seem_to_work_have_theirs(examined, name, problem):
    """(D06, D07, D11, D13) The problem is named; a batch in another order is not taken for no work at all."""
    proof = judged(examined, name)
    assert proof.problem == problem
    assert proof.note


def test_no_graph_of_the_list_is_left_out(examined):
    """A graph that is added to the list has a place in a test as well."""
    both = (test_honest_graphs_have_no_problem, test_graphs_that_only_seem_to_work_have_theirs)
    cases = [case for test in both for mark in test.pytestmark for case in mark.args[1]]
    assert set(examined) == {*(case if isinstance(case, str) else case[0] for case in cases), "by_numbers"}


@pytest.mark.parametrize(
    ("name", "area", "low"),
    [("lab", 0.44, 0.85), ("generated_window", 0.44, 0.85), ("tiny_window", 0.085, 0.5), ("top_half", 0.62, 0.0)],
)
def test_windows_are_measured(examined, name, area, low):
    """Of graphs whose decoders cut out a window: what it holds of the picture, and how often it reaches the end."""
    found = examined[name]["found"]
    assert found["windows"] == 192
    assert found["area"] == pytest.approx(area, rel=0.25)
    assert found["low"] == pytest.approx(low, abs=0.15)


def test_whole_decodes_have_no_windows(examined):
    """There is nothing to measure where all of a file is decoded."""
    assert "windows" not in examined["resized_crop"]["found"]


def credits_of(examined, name):
    plan = examined[name]["plan"]
    assert {work: plan[work] for work in ("turn", "colour", "blur") if plan[work]} == examined[name]["found"]["credits"]
    return examined[name]["found"]["credits"]


def test_work_on_every_image_counts_in_full(examined):
    """The reference turns, colours and blurs each image as well."""
    assert credits_of(examined, "all_three") == {"turn": 1.0, "colour": 1.0, "blur": 1.0}


@pytest.mark.parametrize(("name", "works"), [("now_and_then", ("turn", "colour", "blur")), ("by_numbers", ("turn",))])
def test_work_behind_a_coin_counts_half(examined, name, works):
    """However the graph leaves images out: by a condition or by an argument of zero."""
    assert credits_of(examined, name) == {work: pytest.approx(0.5, abs=0.27) for work in works}


@pytest.mark.parametrize("name", ["idle", "for_nothing"])
def test_work_that_changes_nothing_counts_nothing(examined, name):
    """Neither arguments that say that nothing is to be done, nor work that is multiplied by zero."""
    assert credits_of(examined, name) == {}


def test_work_on_a_thumbnail_counts_as_little_as_it_is(examined):
    """Of 128 by 128 pixels 20 by 20 were worked on."""
    assert credits_of(examined, "on_a_thumbnail") == dict.fromkeys(("turn", "colour", "blur"), 0.02)


def test_a_computed_size_is_the_measured_one(examined):
    """The reference resizes to what came out on average, of which the graph's definition says nothing."""
    plan = examined["computed_shorter"]["plan"]
    resize, crop = plan["view"]
    assert (resize["op"], resize["mode"], crop) == ("resize", "stretch", {"op": "crop", "size": [128, 128]})
    assert all(150 < side < 220 for side in resize["size"])
    assert [step["op"] for step in plan["steps"]] == ["resize", "crop"]
