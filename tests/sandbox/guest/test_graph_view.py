"""What a graph keeps of each image, read from real graphs, and the torchvision transforms that do the same."""

import pytest
from PIL import Image

from sandbox.guest.graph import model, view
from sandbox.guest.trusted import reference_plan

pytestmark = pytest.mark.integration


def serialized():
    """Graphs with every kind of window; for use in a child."""
    from nvidia.dali import fn, types

    from tests.sandbox.guest.pipelines import normalised, over_files

    def decoded(jpegs):
        return fn.decoders.image(jpegs, device="mixed")

    def branches(jpegs):
        images = decoded(jpegs)
        return fn.random_resized_crop(images, size=(32, 40), random_area=[0.2, 0.4]), fn.crop(images, crop=(8, 8))

    made = {
        "random crop": lambda j: fn.decoders.image_random_crop(j, device="mixed"),
        "tiny random crop": lambda j: fn.decoders.image_random_crop(j, device="mixed", random_area=[0.08, 0.08]),
        "wired crop": lambda j: fn.crop(decoded(j), crop_h=fn.random.uniform(range=(10.0, 20.0)), crop_w=24),
        "branches": branches,
        "decoder slice": lambda j: fn.decoders.image_slice(j, (0.1, 0.1), (0.5, 0.25), device="mixed"),
        "decoder crop": lambda j: fn.decoders.image_crop(j, crop=(20, 24), device="mixed"),
        "crop by sides": lambda j: fn.crop(decoded(j), crop_h=20, crop_w=24),
        "shorter": lambda j: fn.resize(decoded(j), resize_shorter=64, interp_type=types.INTERP_CUBIC),
        "bounded": lambda j: fn.resize(decoded(j), resize_shorter=64, max_size=80, interp_type=types.INTERP_NN),
        "one number": lambda j: fn.resize(decoded(j), size=64),
        "computed resize": lambda j: fn.resize(decoded(j), resize_shorter=fn.random.uniform(range=(60.0, 70.0))),
        "region": lambda j: fn.resize(decoded(j), size=[64, 64], roi_start=[0, 0], roi_end=[0.5, 9], roi_relative=True),
        "region in pixels": lambda j: fn.resize(decoded(j), size=[64, 64], roi_start=[40, 20], roi_end=[10, 80]),
        "resize crop mirror": lambda j: fn.resize_crop_mirror(decoded(j), resize_shorter=64, crop=(40, 40)),
        "subscript": lambda j: decoded(j)[5:25, :20],
        "padded": lambda j: fn.pad(decoded(j), shape=[400, 400, 3]),
        "turned": lambda j: fn.rotate(decoded(j), angle=20.0),
        "imagenet": lambda j: normalised(fn.resize(decoded(j), resize_shorter=256), crop=(32, 40)),
        "enlarged": lambda j: fn.crop(fn.resize(decoded(j), size=[4000, 4000]), crop=(32, 40)),
        "lab": lambda j: normalised(fn.random_resized_crop(fn.resize(decoded(j), size=[256, 256]), size=(32, 40))),
    }

    def build(images):
        def outputs(jpegs, labels):
            made = images(jpegs)
            return (labels, *made) if isinstance(made, tuple) else (labels, made)

        return bytes(over_files(outputs).serialize())

    return {name: build(images) for name, images in made.items()}


@pytest.fixture(scope="module")
def windows(lab_child):
    """Those graphs, read."""
    return {name: model.read(data) for name, data in lab_child(serialized).items()}


def crop_of(height, width):
    return {"op": "crop", "size": [height, width]}


def resize_to(*size):
    return {"op": "resize", "size": list(size)}


def random_of(low, high):
    return {"op": "random_resized_crop", "area": [low, high], "ratio": [0.75, 1.333333]}


def measured(graph, sizes, output=1):
    """Sizes of the images after each operator on the way to an output, by their edges."""
    edges = [operator.outputs[0].name for operator in view.path(graph, output)]
    return dict(zip(edges, sizes, strict=True))


def plan_of(graph, *sizes, work=None):
    found = measured(graph, sizes) if sizes else {}
    return reference_plan.plan(graph, [3, 32, 40], "FLOAT", 1, work=work or {}, sizes=found)


WHOLE = (100.0, 200.0)


@pytest.mark.parametrize(
    ("name", "sizes", "steps"),
    [
        ("random crop", [(60.2, 70.1)], [random_of(0.08, 1.0)]),
        ("tiny random crop", [(60.2, 70.1)], [random_of(0.08, 0.08)]),
        ("wired crop", [WHOLE, (15.2, 24.0)], [crop_of(15, 24)]),
        ("decoder slice", [(25.0, 100.0)], [crop_of(25, 100)]),
        ("decoder crop", [(20.0, 24.0)], [crop_of(20, 24)]),
        ("crop by sides", [WHOLE, (20.0, 24.0)], [crop_of(20, 24)]),
        ("subscript", [WHOLE, (20.0, 20.0)], [crop_of(20, 20)]),
        ("padded", [WHOLE, (400.0, 400.0)], [crop_of(400, 400)]),
        ("turned", [WHOLE, (162.2, 222.1)], []),
        ("shorter", [WHOLE, (80.5, 102.4)], [resize_to(64)]),
        ("bounded", [WHOLE, (40.0, 80.0)], [resize_to(40, 80)]),
        ("one number", [WHOLE, (64.0, 64.0)], [resize_to(64, 64)]),
        ("computed resize", [WHOLE, (64.4, 128.8)], [resize_to(64, 129)]),
        ("region", [WHOLE, (64.0, 64.0)], [crop_of(50, 200), resize_to(64, 64)]),
        ("region in pixels", [WHOLE, (64.0, 64.0)], [crop_of(30, 60), resize_to(64, 64)]),
        ("resize crop mirror", [WHOLE, (40.0, 40.0)], [resize_to(40, 40)]),
    ],
)
def test_windows_and_sizes_are_those_that_were_measured(windows, name, sizes, steps):
    """Each way of DALI to cut or resize gives its step, in pixels, height first."""
    graph = windows[name]
    assert view.steps(graph, 1, measured(graph, sizes)) == steps


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([0.0, 0.01], [random_of(0.0001, 0.01)]),
        ([-1.0, 0.01], [random_of(0.0001, 0.01)]),
        ([float("nan"), 0.01], []),
        ([], []),
    ],
)
def test_an_odd_area_is_not_taken_for_the_default(windows, values, steps):
    """Only an argument that is not there has its default; what nobody would write is read as it stands, or not."""
    graph = model.read(model.write(windows["random crop"]))
    decoder = next(op for op in graph.operators if op.name == "decoders__ImageRandomCrop")
    decoder.put(model.Argument("random_area", "float", values, is_vector=True))
    assert view.steps(graph, 1, {}) == steps


def test_the_output_that_is_asked_for_counts(windows):
    """Another output with a smaller crop is another branch; one of numbers has none."""
    graph = windows["branches"]
    assert view.steps(graph, 2, measured(graph, [WHOLE, (8.0, 8.0)], 2)) == [crop_of(8, 8)]
    assert view.path(graph, 0) == []
    assert [op.name for op in view.path(graph, 1)] == ["decoders__Image", "RandomResizedCrop"]


def test_of_several_decoders_the_first_is_followed(graphs):
    """What the others decode is measured, see `Experiments`; the reference does the work of one."""
    assert [op.name for op in view.path(model.read(graphs["two readers"]), 0)][:2] == ["decoders__Image", "Resize"]


def test_branches_that_part_and_meet_cut_nothing(graphs):
    """Each has other images of the batch, and so another mean size."""
    graph = model.read(graphs["conditional"])
    names = [operator.name for operator in view.path(graph, 0)]
    place = names.index("_conditional__Merge")
    sizes = [(32.0, 32.0)] * place + [(31.0, 33.0)] * (len(names) - place)
    assert all(step["op"] == "resize" for step in view.steps(graph, 0, measured(graph, sizes, 0)))


def test_long_graphs_are_walked_too(graphs):
    """The path of AutoAugment, with its hundreds of operators and branches, starts at the decoder."""
    for name in ("auto", "trivial", "rand", "conditional"):
        path = view.path(model.read(graphs[name]), 0)
        assert path[0].name == "decoders__Image"
        assert path[-1].name == "CropMirrorNormalize"


@pytest.mark.parametrize(
    ("name", "sizes", "steps"),
    [
        ("random crop", [(60.2, 70.1)], [random_of(0.08, 1.0)]),
        ("lab", [WHOLE, (256.0, 256.0), (32.0, 40.0), (32.0, 40.0)], [random_of(0.08, 1.0)]),
        ("branches", [WHOLE, (32.0, 40.0)], [random_of(0.2, 0.4)]),
        ("imagenet", [WHOLE, (256.0, 512.0), (32.0, 40.0)], [resize_to(64), crop_of(32, 40)]),
        ("enlarged", [WHOLE, (4000.0, 4000.0), (32.0, 40.0)], [resize_to(64, 80), crop_of(32, 40)]),
        ("crop by sides", [WHOLE, (20.0, 24.0)], [crop_of(20, 24)]),
        ("one number", [WHOLE, (64.0, 64.0)], []),
        ("region", [WHOLE, (64.0, 64.0)], [crop_of(50, 200)]),
        ("imagenet", [], [crop_of(32, 40)]),
        ("lab", [], [random_of(0.08, 1.0)]),
    ],
)
def test_the_reference_has_the_least_job_with_the_same_result(windows, name, sizes, steps):
    """Nothing that a later window or size makes superfluous, no great enlargement, and nothing that is not known of."""
    assert plan_of(windows[name], *sizes)["steps"] == steps


@pytest.mark.parametrize(
    ("name", "size", "mode"),
    [
        ("shorter", (40.0, 64.0), "bilinear"),  # cubic
        ("shorter", (4.0, 4.0), "bilinear"),  # then made as large as it is in another way, which the reference does not
        ("bounded", (40.0, 80.0), "nearest"),
        ("turned", (162.2, 222.1), "nearest"),
    ],
)
def test_the_reference_filters_where_a_resize_to_the_final_size_does(windows, name, size, mode):
    """No filter costs it more than the bilinear one; where none made the images as large as they are it has none."""
    assert plan_of(windows[name], WHOLE, size)["interpolation"] == mode


@pytest.mark.parametrize(
    ("name", "sizes", "wanted"),
    [
        ("shorter", [WHOLE, (32.0, 40.0)], [32, 40]),
        ("shorter", [WHOLE, (32.0, 22.0)], [32, 40]),
        ("shorter", [(10.0, 20.0), (8.0, 10.0)], [8, 10]),
        ("padded", [(8.0, 10.0), (32.0, 40.0)], [8, 10]),
    ],
)
def test_what_is_put_around_an_image_is_no_work_to_match(windows, name, sizes, wanted):
    """The reference's images have the pixels that a decoder or a resize made, once they are much fewer."""
    assert plan_of(windows[name], *sizes)["size"] == wanted


def test_the_reference_works_as_much_as_the_graph_was_seen_to(windows):
    """A share of the images is turned, coloured or blurred, and nothing is for operators that the graph only has."""
    usual = plan_of(windows["lab"])
    assert (usual["turn"], usual["colour"], usual["blur"], usual["mirror"]) == (0.0, 0.0, 0.0, False)
    busy = plan_of(windows["lab"], work={"turn": 1.0, "blur": 0.123})
    assert (busy["turn"], busy["colour"], busy["blur"]) == (1.0, 0.0, 0.12)


JOBS = (
    [],
    [random_of(0.08, 1.0)],
    [random_of(0.08, 1.0), resize_to(64), crop_of(32, 40)],
    [resize_to(64), crop_of(32, 40)],
    [resize_to(20, 24), crop_of(32, 40)],
    [crop_of(32, 40)],
    [crop_of(20, 24)],
    [crop_of(999, 999)],
)


def test_the_transforms_end_with_the_size_of_the_batch(lab_child, windows):
    """Whatever the job, torchvision delivers the graph's own output size, from images smaller and larger than it."""
    plans = [{**plan_of(windows["lab"]), "steps": steps} for steps in JOBS]

    def shapes():
        from sandbox.guest.trusted import reference

        sizes = ((20, 24), (500, 375), (33, 400))
        return [list(reference.transform(plan)(Image.new("RGB", size)).shape) for plan in plans for size in sizes]

    assert lab_child(shapes) == [[3, 32, 40]] * 3 * len(JOBS)


def test_the_transforms_show_the_part_that_the_graph_shows(lab_child):
    """A quarter in the middle of an image is all that a slice, a crop or a resize with a crop shows."""

    def colours():
        from sandbox.guest.trusted import reference

        image = Image.new("RGB", (200, 100), "black")
        image.paste("white", (50, 25, 150, 75))
        steps = {
            "crop": [crop_of(50, 100)],
            "by height": [resize_to(50), crop_of(25, 50)],
            "stretched": [resize_to(20, 40), crop_of(10, 20)],
            "all": [],
        }
        found = {}
        for name, wanted in steps.items():
            plan = {"steps": wanted, "size": [10, 20], "interpolation": "nearest"}
            shown = image
            for transform in reference.transforms_of(plan):
                shown = transform(shown)
            found[name] = sum(pixel[0] for pixel in shown.getdata()) / 255 / 200
        return found

    found = lab_child(colours)
    assert found.pop("all") == pytest.approx(0.25)
    assert all(share > 0.95 for share in found.values()), found
