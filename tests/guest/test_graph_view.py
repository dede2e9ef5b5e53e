"""What a graph keeps of each image, read from real graphs, and the torchvision transforms that do the same."""

import pytest

from sandbox.guest.graph import model, view
from sandbox.guest.trusted import reference_plan

pytestmark = pytest.mark.integration
RATIO = [0.75, 1.333333]


def serialized():
    """Graphs with every kind of window; for use in a child."""
    from nvidia.dali import fn, pipeline_def, types

    from tests.guest.pipelines import BASIC, normalised

    def decoded(jpegs):
        return fn.decoders.image(jpegs, device="mixed")

    def branches(jpegs):
        images = decoded(jpegs)
        return fn.random_resized_crop(images, size=(32, 40), random_area=[0.2, 0.4]), fn.crop(images, crop=(8, 8))

    def generated(jpegs):
        window = fn.random_crop_generator(fn.peek_image_shape(jpegs), random_area=[0.1, 0.2])
        return fn.decoders.image_slice(jpegs, *window, device="mixed")

    def uniform(low, high):
        return fn.random.uniform(range=(low, high), shape=2)

    window = fn.decoders.image_slice
    made = {
        "random crop": lambda j: fn.decoders.image_random_crop(j, device="mixed"),
        "tiny random crop": lambda j: fn.decoders.image_random_crop(j, device="mixed", random_area=[0.08, 0.08]),
        "wired crop": lambda j: fn.crop(decoded(j), crop_h=fn.random.uniform(range=(10.0, 20.0)), crop_w=24),
        "branches": branches,
        "constant slice": lambda j: window(j, (0.1, 0.1), (0.5, 0.25), device="mixed"),
        "random slice": lambda j: window(j, uniform(0.0, 0.2), uniform(0.1, 0.5), device="mixed"),
        "computed slice": lambda j: window(j, uniform(0.0, 0.1), uniform(0.1, 0.3) * 2, device="mixed"),
        "generated slice": generated,
        "named slice": lambda j: window(j, rel_start=[0.1, 0.2], rel_shape=[0.5, 0.25], axes=[0, 1], device="mixed"),
        "ends of a slice": lambda j: window(j, start=[1, 2], end=[31, 22], axis_names="WH", device="mixed"),
        "one axis": lambda j: window(j, rel_start=[0.25], rel_end=[0.75], axes=[1], device="mixed"),
        "picked slice": lambda j: window(
            j, uniform(0.0, 0.1), fn.random.uniform(values=[0.1, 0.9], shape=2), device="mixed"
        ),
        "decoder crop": lambda j: fn.decoders.image_crop(j, crop=(20, 24), device="mixed"),
        "crop by sides": lambda j: fn.crop(decoded(j), crop_h=20, crop_w=24),
        "shorter": lambda j: fn.resize(decoded(j), resize_shorter=64, interp_type=types.INTERP_CUBIC),
        "longer": lambda j: fn.resize(decoded(j), resize_longer=64),
        "not larger": lambda j: fn.resize(decoded(j), size=[64, 80], mode="not_larger", interp_type=types.INTERP_NN),
        "one number": lambda j: fn.resize(decoded(j), size=64),
        "computed resize": lambda j: fn.resize(decoded(j), resize_shorter=fn.random.uniform(range=(60.0, 70.0))),
        "width": lambda j: fn.resize(decoded(j), resize_x=64),
        "region": lambda j: fn.resize(decoded(j), size=[64, 64], roi_start=[0, 0], roi_end=[0.5, 1], roi_relative=True),
        "resize crop mirror": lambda j: fn.resize_crop_mirror(decoded(j), resize_shorter=64, crop=(40, 40)),
        "subscript": lambda j: decoded(j)[5:25, :20],
        "open subscript": lambda j: decoded(j)[5:, :20],
        "imagenet": lambda j: normalised(fn.resize(decoded(j), resize_shorter=256), crop=(32, 40)),
        "enlarged": lambda j: fn.crop(fn.resize(decoded(j), size=[4000, 4000]), crop=(32, 40)),
        "lab": lambda j: normalised(fn.random_resized_crop(fn.resize(decoded(j), size=[256, 256]), size=(32, 40))),
    }

    def build(images):
        @pipeline_def
        def pipe():
            jpegs, labels = fn.readers.file(file_root="/nowhere")
            outputs = images(jpegs)
            return (labels, *outputs) if isinstance(outputs, tuple) else (labels, outputs)

        return bytes(pipe(**BASIC).serialize()).hex()

    return {name: build(images) for name, images in made.items()}


@pytest.fixture(scope="module")
def windows(lab_child):
    """Those graphs, read."""
    return {name: model.read(bytes.fromhex(text)) for name, text in lab_child(serialized).items()}


def slice_of(height, width, **more):
    return {"op": "slice", "share": [height, width], **more}


def crop_of(height, width, **more):
    return {"op": "crop", "size": [height, width], **more}


def resize_to(mode, height, width):
    return {"op": "resize", "mode": mode, "size": [height, width]}


def random_of(low, high, ratio=RATIO, **more):
    return {"op": "random_crop", "area": [low, high], "ratio": ratio, **more}


IN_DECODER = {"decoder": True}


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("random crop", [random_of(0.08, 1.0, **IN_DECODER)]),
        ("tiny random crop", [random_of(0.08, 0.08, **IN_DECODER)]),
        ("wired crop", [{"op": "unknown"}]),
        ("branches", [{**random_of(0.2, 0.4), "op": "random_resized_crop", "size": [32, 40]}]),
        ("constant slice", [slice_of(0.25, 0.5, **IN_DECODER)]),
        ("random slice", [slice_of(0.3, 0.3, **IN_DECODER)]),
        ("computed slice", [{"op": "unknown", **IN_DECODER}]),
        ("picked slice", [{"op": "unknown", **IN_DECODER}]),
        ("generated slice", [random_of(0.1, 0.2, **IN_DECODER)]),
        ("named slice", [slice_of(0.5, 0.25, **IN_DECODER)]),
        ("ends of a slice", [crop_of(20, 30, **IN_DECODER)]),
        ("one axis", [slice_of(1.0, 0.5, **IN_DECODER)]),
        ("decoder crop", [crop_of(20, 24, **IN_DECODER)]),
        ("crop by sides", [crop_of(20, 24)]),
        ("shorter", [resize_to("not_smaller", 64, 64)]),
        ("longer", [resize_to("not_larger", 64, 64)]),
        ("not larger", [resize_to("not_larger", 64, 80)]),
        ("one number", [resize_to("stretch", 64, 64)]),
        ("width", [resize_to("stretch", 0, 64)]),
        ("region", [slice_of(0.5, 1.0), resize_to("stretch", 64, 64)]),
        ("resize crop mirror", [resize_to("not_smaller", 64, 64), crop_of(40, 40)]),
        ("subscript", [crop_of(20, 20)]),
        ("open subscript", [{"op": "unknown"}]),
    ],
)
def test_windows_and_sizes_are_read(windows, name, steps):
    """Each way of DALI to cut or resize gives its step, in pixels or shares, height first."""
    assert view.steps(windows[name]) == steps


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.0, 0.01], random_of(0.0001, 0.01, **IN_DECODER)),
        ([-1.0, 0.01], random_of(0.0001, 0.01, **IN_DECODER)),
        ([float("nan"), 0.01], {"op": "unknown", **IN_DECODER}),
        ([], {"op": "unknown", **IN_DECODER}),
    ],
)
def test_an_odd_area_is_not_taken_for_the_default(windows, values, step):
    """Only an argument that is not there has its default; what nobody would write is read as it stands, or not."""
    graph = model.read(model.write(windows["random crop"]))
    decoder = next(op for op in graph.operators if op.name == "decoders__ImageRandomCrop")
    decoder.put(model.Argument("random_area", "float", values, is_vector=True))
    assert view.steps(graph) == [step]


def test_the_branch_with_the_images_counts(windows):
    """Another output with a smaller crop is another branch; asked for, it is read instead."""
    assert view.steps(windows["branches"], 2) == [crop_of(8, 8)]
    assert view.path(windows["branches"], 0) == []
    assert [op.name for op in view.path(windows["branches"], 1)] == ["decoders__Image", "RandomResizedCrop"]


def test_of_several_decoders_the_first_is_followed(graphs):
    """What the others decode is measured, see `Experiments`; the reference does the work of one."""
    assert [op.name for op in view.path(model.read(graphs["two readers"]))][:2] == ["decoders__Image", "Resize"]
    assert view.steps(model.read(graphs["two readers"])) == [resize_to("stretch", 32, 32)]


@pytest.mark.parametrize(
    ("name", "sizes", "step"),
    [
        ("computed resize", [[100.0, 200.0], [64.4, 80.0]], resize_to("stretch", 64, 80)),
        ("wired crop", [[100.0, 200.0], [25.0, 50.0]], slice_of(0.25, 0.25)),
        ("open subscript", [[100.0, 200.0], [150.0, 20.0]], slice_of(1.0, 0.1)),
        ("shorter", [[100.0, 200.0], [64.0, 128.0]], resize_to("not_smaller", 64, 64)),
        ("crop by sides", [[100.0, 200.0], [9.0, 9.0]], crop_of(20, 24)),
    ],
)
def test_measured_sizes_stand_in_for_computed_ones(windows, name, sizes, step):
    """Only for what the graph computes: what it says itself is taken as it stands."""
    graph = windows[name]
    edges = [operator.outputs[0].name for operator in view.path(graph)][-2:]
    assert view.steps(graph, None, dict(zip(edges, sizes, strict=True))) == [step]


def test_without_a_measurement_a_computed_window_stays_unknown(windows):
    """An edge that was not given out, or one of images that are none, says nothing."""
    edges = [operator.outputs[0].name for operator in view.path(windows["wired crop"])]
    assert view.steps(windows["wired crop"], None, dict.fromkeys(edges, ())) == [{"op": "unknown"}]
    assert view.steps(windows["computed resize"]) == [resize_to("stretch", 0, 0)]


def test_long_graphs_are_walked_too(graphs):
    """The path of AutoAugment, with its hundreds of operators and branches, starts at the decoder."""
    for name in ("auto", "trivial", "rand", "conditional"):
        path = view.path(model.read(graphs[name]))
        assert path[0].name == "decoders__Image"
        assert path[-1].name == "CropMirrorNormalize"


@pytest.mark.parametrize(
    ("name", "geometry", "steps"),
    [
        ("random crop", "random_resized_crop", ["random_resized_crop"]),
        ("lab", "random_resized_crop", ["random_resized_crop"]),
        ("imagenet", "resize_and_crop", ["resize", "crop"]),
        ("crop by sides", "crop", ["crop"]),
        ("one number", "resize", []),
        ("constant slice", "crop", ["slice"]),
        ("region", "resize_and_crop", ["slice"]),
        ("computed slice", "crop", []),
    ],
)
def test_the_reference_has_the_least_job_with_the_same_result(windows, name, geometry, steps):
    """Resizes that a later window or size makes superfluous are left out."""
    plan = reference_plan.plan(windows[name], [3, 32, 40], "FLOAT")
    assert (plan["geometry"], [step["op"] for step in plan["steps"]]) == (geometry, steps)


def test_random_windows_keep_their_area(windows):
    """The reference crops as the graph does, not as torchvision does by default."""
    plan = reference_plan.plan(windows["branches"], [3, 32, 40], "FLOAT")
    assert (plan["scale"], plan["ratio"]) == ([0.2, 0.4], RATIO)
    assert plan["steps"] == [{"op": "random_resized_crop", "area": [0.2, 0.4], "ratio": RATIO}]
    assert reference_plan.plan(windows["one number"], [64, 64, 3], "UINT8")["scale"] == [0.08, 1.0]


def test_the_reference_does_not_enlarge_with_the_graph(windows):
    """An enormous resize before a crop, cheap on a GPU, is held to twice the final size."""
    plan = reference_plan.plan(windows["enlarged"], [3, 32, 40], "FLOAT")
    assert plan["steps"][0] == resize_to("stretch", 64, 80)
    assert plan["view"][0] == resize_to("stretch", 4000, 4000)


@pytest.mark.parametrize(("name", "mode"), [("shorter", "bicubic"), ("not larger", "nearest"), ("lab", "bilinear")])
def test_interpolation_is_the_graphs(windows, name, mode):
    """Bilinear unless the graph says otherwise."""
    assert reference_plan.plan(windows[name], [3, 32, 40], "FLOAT")["interpolation"] == mode


def test_the_reference_works_as_much_as_the_graph_was_seen_to(windows):
    """A share of the images is turned, coloured or blurred, and nothing is for operators that the graph only has."""
    usual = reference_plan.plan(windows["lab"], [3, 32, 40], "FLOAT")
    assert (usual["turn"], usual["colour"], usual["blur"], usual["mirror"]) == (0.0, 0.0, 0.0, False)
    busy = reference_plan.plan(windows["lab"], [3, 32, 40], "FLOAT", work={"turn": 1.0, "blur": 0.123})
    assert (busy["turn"], busy["colour"], busy["blur"]) == (1.0, 0.0, 0.12)


def test_the_transforms_end_with_the_size_of_the_batch(lab_child, windows):
    """Whatever the job, torchvision delivers the graph's own output size, from images smaller and larger than it."""
    plans = {name: reference_plan.plan(graph, [3, 32, 40], "FLOAT") for name, graph in windows.items()}

    def shapes():
        from PIL import Image

        from sandbox.guest.trusted import reference

        sizes = ((20, 24), (500, 375), (33, 400))
        return {
            name: [list(reference.transform(plan)(Image.new("RGB", size)).shape) for size in sizes]
            for name, plan in plans.items()
        }

    for name, found in lab_child(shapes).items():
        assert found == [[3, 32, 40]] * 3, name


def test_the_reference_loader_delivers_the_plan(lab_child, windows, held_out):
    """Workers take the transforms of a real plan along, and batches of the graph's own output size come."""
    plan = reference_plan.plan(windows["imagenet"], [3, 32, 40], "FLOAT")
    settings = {"batch_size": 4, "num_workers": 1, "pin_memory": False, "prefetch_factor": 2}

    def shapes():
        from sandbox.guest.trusted import reference

        stream = reference.batches(held_out, plan, settings, "cpu")
        return [list(next(stream).shape) for _ in range(3)]

    assert lab_child(shapes) == [[4, 3, 32, 40]] * 3


def test_the_transforms_show_the_part_that_the_graph_shows(lab_child):
    """A quarter in the middle of an image is all that a slice, a crop or a resize with a crop shows."""

    def colours():
        from PIL import Image

        from sandbox.guest.trusted import geometry

        image = Image.new("RGB", (200, 100), "black")
        image.paste("white", (50, 25, 150, 75))
        steps = {
            "slice": [slice_of(0.5, 0.5)],
            "crop": [crop_of(50, 100)],
            "by width": [resize_to("stretch", 0, 100), crop_of(25, 50)],
            "covering": [resize_to("not_smaller", 50, 50), crop_of(25, 50)],
            "fitting": [resize_to("not_larger", 50, 50), crop_of(13, 25)],
            "all": [],
        }
        found = {}
        for name, wanted in steps.items():
            plan = {"steps": wanted, "size": [10, 20], "interpolation": "nearest"}
            shown = image
            for transform in geometry.transforms_of(plan):
                shown = transform(shown)
            found[name] = sum(pixel[0] for pixel in shown.getdata()) / 255 / 200
        return found

    found = lab_child(colours)
    assert found.pop("all") == pytest.approx(0.25)
    assert all(share > 0.95 for share in found.values()), found
