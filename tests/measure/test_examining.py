"""Tier A: real graphs run on other pictures, as in the clean room; honest ones have no problem, others have theirs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grader_service.held_out.plan import ShardPlan
from grader_service.held_out.shards import PendingShard
from grader_service.measure.acceptance import Observed, judge
from tests.held_out.factories import SEED

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SIZES = ((256, 192), (192, 256), (240, 192)) * 16


@pytest.fixture(scope="module")
def examined(tmp_path_factory):
    """What was found of each graph of `graphs.py`, and the plan of the reference beside it, by the graph's name."""
    folder = tmp_path_factory.mktemp("shard")
    PendingShard(ShardPlan(SEED, SIZES), folder).names()
    command = [sys.executable, "-m", "tests.measure.examining", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False)
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


SEEMING = {
    "independent": ("noise", "noise_in_disguise", "noise_beside_an_image", "stamp", "dimmed"),
    "unclear": ("one_for_all", "neighbours", "shuffled"),
    "lesser": (
        "tiny_window", "computed_tiny_window", "top_rows", "top_half", "whole_beside_a_window", "strips", "two_in_five",
    ),
    "not_examined": (
        "permuted_number", "named_files", "whole_by_luck", "worked_on_by_luck", "whole_where_one_is_twice",
        "led_by_one",
    ),
}  # fmt: skip
"""Problem → graphs that have it."""


@pytest.mark.parametrize(("name", "problem"), [(name, problem) for problem, names in SEEMING.items() for name in names])
def test_graphs_that_only_seem_to_work_have_theirs(examined, name, problem):
    """(D06, D07, D11, D13, D29, D30) The problem is named; a batch in another order is not taken for no work at all."""
    proof = judged(examined, name)
    assert proof.problem == problem
    assert proof.note


@pytest.mark.parametrize(
    ("name", "area", "low"),
    [("lab", 0.44, 0.85), ("generated_window", 0.44, 0.85), ("tiny_window", 0.085, 0.5), ("top_half", 0.62, 0.0)],
)
def test_windows_are_measured(examined, name, area, low):
    """Of graphs whose decoders cut out a window: what it holds of the picture, and how often it reaches the end."""
    found = examined[name]["found"]
    assert found["windows"] == 191  # of 192, as many as there would be of equal size
    assert found["area"] == pytest.approx(area, rel=0.25)
    assert found["low"] == pytest.approx(low, abs=0.15)


def test_whole_decodes_have_no_windows(examined):
    """There is nothing to measure where all of a file is decoded."""
    assert "windows" not in examined["resized_crop"]["found"]


EACH = ("turn", "colour", "blur")
CREDITS = {
    "all_three": dict.fromkeys(EACH, 1.0),
    # A coin turns it off by an argument of zero.
    "by_numbers": {"turn": pytest.approx(0.5, abs=0.27)},
    # Idle arguments, work that is multiplied by zero, and work behind a condition, where DALI shows no sizes.
    "idle": {},
    "for_nothing": {},
    "now_and_then": {},
    # Of 128 by 128 pixels 20 by 20 were worked on.
    "on_a_thumbnail": dict.fromkeys(EACH, 0.02),
}


@pytest.mark.parametrize("name", CREDITS)
def test_work_counts_by_how_much_of_it_is_done(examined, name):
    """The reference turns, colours and blurs images as well, and as much of them."""
    found, plan = examined[name]["found"], examined[name]["plan"]
    assert {work: plan[work] for work in EACH if plan[work]} == found["credits"] == CREDITS[name]


def test_a_computed_size_is_the_measured_one(examined):
    """The reference resizes to what came out on average, of which the graph's definition says nothing."""
    resize, crop = examined["computed_shorter"]["plan"]["steps"]
    assert (resize["op"], crop) == ("resize", {"op": "crop", "size": [128, 128]})
    assert all(150 < side < 220 for side in resize["size"])


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("whole_unless_jpeg", [("crop", 16, 16)]),
        ("drowned_unless_jpeg", [("crop", 212, 228)]),
        ("dark_if_jpeg", []),
        ("padded_unless_jpeg", [("resize", 128, 128), ("crop", 1200, 1200), ("crop", 128, 128)]),
    ],
)
def test_a_fast_decode_does_not_tell_a_jpeg(examined, name, steps):
    """(D28) Decoders give the same pixels however they are asked, so that a graph treats files as it treats twins."""
    proof, seen = judged(examined, name), examined[name]
    assert (proof.problem, proof.own, proof.alike) == (None, 48, 48)
    assert any("use_fast_idct" in change for change in seen["changed"])
    assert seen["found"].get("area", 1.0) == 1.0
    assert job_of(seen["plan"]) == {"steps": steps}


WORK = {"turn": 0.0, "colour": 0.0, "blur": 0.0, "grey": False, "mirror": False, "interpolation": "bilinear"}
WORK |= {"size": [128, 128]}
"""A plan without any augmentation."""
NEAREST = {"interpolation": "nearest"}
LARGE = {**NEAREST, "size": [512, 512]}
REPEATED = {**NEAREST, "size": [219, 219]}
"""Nothing but the decoded image was as large as that, whatever came out."""
LARGE_CROP = ("crop", 512, 512)


def job_of(plan):
    """Steps of a plan, and what else is not as in one without augmentation."""
    steps = [(step["op"], *step["size"]) for step in plan["steps"]]
    return {"steps": steps, **{key: plan[key] for key, usual in WORK.items() if plan[key] != usual}}


@pytest.mark.parametrize(
    ("name", "steps", "others"),
    [
        ("branch_never_taken", [("crop", 128, 128)], NEAREST),
        ("enlarged_by_nearest", [], LARGE),
        ("wired_filter", [], LARGE),
        ("filtered_small", [("resize", 1, 1), LARGE_CROP], {"size": [1, 1]}),
        ("warped_large", [], {"size": [16, 16]}),
        ("framed", [("resize", 16, 16), LARGE_CROP], {"size": [16, 16]}),
        ("warped_small", [("crop", 128, 128)], {**NEAREST, "turn": 1.0}),
        ("fused_crop", [], {}),
        ("one_row", [("resize", 8, 128), ("crop", 512, 3), LARGE_CROP], {"size": [64, 64]}),
        ("mean_colour", [LARGE_CROP], REPEATED),
        ("grey_threefold", [], {"grey": True}),
        ("turned_into_a_stamp", [], {}),
        ("one_in_full", [], {}),
        ("one_channel", [], {"turn": 0.33, "colour": 0.33, "blur": 0.33}),
        ("padded_again_and_again", [("crop", 300, 229), ("crop", 180, 229)] * 4, {}),
    ],
)
def test_the_reference_has_no_more_work_than_the_graph(examined, name, steps, others):
    """(D31 to D33) Unused filters and branches, pixels that are repeated, and small parts cost it nothing."""
    assert judged(examined, name).problem is None
    assert job_of(examined[name]["plan"]) == {"steps": steps, **others}


@pytest.mark.parametrize("name", ["tall_or_wide", "tall_or_wide_crop"])
def test_strips_of_both_directions_are_no_large_square(examined, name):
    """(D31) Where images are padded, as many pixels are planned as there are, and not mean height by mean width."""
    assert judged(examined, name).problem is None
    resize, (_, height, width), crop = job_of(examined[name]["plan"])["steps"]
    assert (resize, crop) == (("resize", 128, 128), ("crop", 128, 128))
    assert height * width == pytest.approx(128 * 2400, rel=0.02)


def test_no_graph_of_the_list_is_left_out(examined):
    """A graph that is added to the list has a place in a test as well."""
    tests = [
        test_honest_graphs_have_no_problem,
        test_graphs_that_only_seem_to_work_have_theirs,
        test_work_counts_by_how_much_of_it_is_done,
        test_a_fast_decode_does_not_tell_a_jpeg,
        test_the_reference_has_no_more_work_than_the_graph,
        test_strips_of_both_directions_are_no_large_square,
    ]
    cases = [case for test in tests for mark in test.pytestmark for case in mark.args[1]]
    assert set(examined) == {case if isinstance(case, str) else case[0] for case in cases}
