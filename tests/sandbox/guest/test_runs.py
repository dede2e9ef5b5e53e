"""Runs of one graph: what is random in it is the grader's, so that the same files give the same images."""

import math
import random

import numpy as np
import pytest
from PIL import Image

from sandbox.guest.graph import model
from sandbox.guest.graph.operators import OPERATORS
from sandbox.guest.trusted import experiments, runs
from tests.sandbox.guest.editing import edited

pytestmark = pytest.mark.integration


def test_what_has_a_state_takes_a_seed_or_reads_files(lab_child):
    """All that an allowed operator can remember is a random state, which the grader sets, or a place in its files."""

    def remembering():
        from nvidia.dali import backend

        schemas = {name: backend.TryGetSchema(name) for name, row in OPERATORS.items() if not row.refused}
        return {name: schema.HasArgument("seed") for name, schema in schemas.items() if schema and schema.IsStateful()}

    found = lab_child(remembering)
    assert {"random__Uniform", "BatchPermutation", "decoders__ImageRandomCrop", "noise__Gaussian"} <= found.keys()
    assert [name for name, seeded in found.items() if not seeded and not OPERATORS[name].reads] == []


def test_every_seed_is_replaced(lab_child, graphs):
    """By one that is drawn; of all operators that take one, whether they had one or not."""
    data = graphs["conditional"]

    def seeds():
        found = []
        for start in (1, 1, 2):
            graph = model.read(data)
            runs.reseed(graph, random.Random(start))
            found.append({f"{n} {op.name}": op.scalar("seed") for n, op in enumerate(graph.operators)})
        return found

    one, again, other = lab_child(seeds)
    own = [operator.scalar("seed") for operator in model.read(data).operators]
    assert one == again
    drawn = [value for name, value in one.items() if name.split()[1].startswith(("random__", "readers__"))]
    assert len(drawn) >= 4
    assert all(isinstance(value, int) and 0 <= value < 1 << 31 for value in drawn)
    assert len(set(drawn)) == len(drawn)
    assert not {*drawn} & {*own}
    assert not {*drawn} & {*other.values()}


def test_runs_differ_by_their_files_alone(lab_child, graphs, held_out):
    """A random graph gives the same images for the same files, others for others, and in the order of the files."""
    data = graphs["lab"]

    def digests():
        ready = runs.still(model.read(edited(data, held_out)), 0, random.Random(3))
        many = runs.Runs([7] * 16, pytest.fail)
        files = [held_out[n % 6] for n in range(16)]
        swapped = [held_out[1], *files[1:]]
        return [[seen.digest.hex() for seen in many.run(ready, names)[0]] for names in (files, files, swapped)]

    first, second, changed = lab_child(digests)
    assert first == second
    assert [one == other for one, other in zip(first, changed, strict=True)] == [False] + [True] * 15


def test_a_still_graph_has_one_output_and_reads_in_order(lab_child, graphs):
    """Nothing is shuffled, and no batch is made ahead, which would be made of other files."""
    data = graphs["labels first"]

    def facts():
        graph = model.read(data)
        reader = next(op for op in graph.operators if op.name == "readers__File")
        reader.put(model.argument("random_shuffle", True))
        reader.put(model.argument("shuffle_after_epoch", True))
        ready = runs.still(graph, 2, random.Random(3))
        reader = next(op for op in ready.operators if op.name == "readers__File")
        flags = [reader.scalar(name) for name in ("random_shuffle", "shuffle_after_epoch")]
        return [flags, ready.prefetch, [edge.name for edge in ready.outputs] == [graph.outputs[2].name],
                [op.name for op in ready.operators]]  # fmt: skip

    flags, prefetch, same, operators = lab_child(facts)
    assert flags == [False, None]
    assert prefetch == [1, 1]
    assert same
    assert operators == ["readers__File", "decoders__Image", "Resize"]


@pytest.mark.parametrize("shape", [(200, 300, 3), (3, 200, 300), (200, 300), (2, 100, 300, 3), (1, 3, 200, 300)])
def test_sizes_are_height_and_width_wherever_channels_stand(shape):
    """A normalised image often has its channels first, and its size is what the reference takes."""
    assert experiments._mean_size([runs.Seen(shape, b"")] * 2, [1.0, 1.0]) == [200.0, 300.0]


@pytest.mark.parametrize(
    ("shapes", "weights", "side"),
    [
        ([(96, 2400, 3), (2400, 96, 3)], [1.0, 1.0], 480.0),
        ([(1000, 1000, 3), (100, 100, 3)], [1.0, 98.0], math.sqrt((1e6 + 98e4) / 99)),
    ],
    ids=["tall or wide by lot", "a rare large image"],
)
def test_a_mean_size_has_the_mean_area(shapes, weights, side):
    """The largest files stand for themselves, the others that are looked at for all that are not."""
    found = experiments._mean_size([runs.Seen(shape, b"") for shape in shapes], weights)
    assert found == [pytest.approx(side, abs=0.1)] * 2


def test_what_files_stand_for_adds_up_to_all(tmp_path):
    """Also where not all that were chosen could be looked at, of which the largest come first."""
    files = [tmp_path / str(size) for size in range(1, 101)]
    for file in files:
        file.write_bytes(b"-" * int(file.name))
    largest, others = experiments._chosen([str(file) for file in files], 20, random.Random(3))
    assert largest == [str(file) for file in files[-4:]]
    assert len({*largest, *others}) == 20
    for looked_at in (20, 9):
        weights = experiments._weights([*largest, *others][:looked_at], largest, 100)
        assert sum(weights) == pytest.approx(100)
        assert weights[:4] == [1.0] * 4
    few = [str(file) for file in files[:3]]
    assert experiments._chosen(few, 3, random.Random(3)) == (few, [])


def test_large_files_leave_no_room_for_the_least_important(lab_child, tmp_path):
    """The largest come first; and in whatever order they stand then, each has its own picture."""
    files = [tmp_path / f"{number}.png" for number in range(40)]
    for number, file in enumerate(files):
        Image.new("RGB", (8, 8), (number, number, number)).save(file)

    def looked_at():
        from sandbox.guest.trusted import twins

        twins._MOST_BYTES = 20 * 8 * 8 * 3
        decoder = model.Operator("decoders__Image")
        with twins.Pictures([str(file) for file in files], decoder, 1, grey=False) as pictures:
            pictures.shuffle(random.Random(3))
            return pictures.files, [int(pixels[0, 0, 0]) for pixels in pictures.pixels]

    found, shown = lab_child(looked_at)
    assert sorted(found) == sorted(str(file) for file in files[:32])
    assert found != [str(file) for file in files[:32]]
    assert [f"{number}.png" for number in shown] == [file.rpartition("/")[2] for file in found]


def seen(*rows, shape=(1, 4, 1)):
    """Images of a run with these values."""
    arrays = [np.array(row, np.float32) for row in rows]
    return [runs.Seen(shape, row.tobytes(), row) for row in arrays]


PICTURES = seen([0, 10, 0, 10], [10, 0, 0, 10], [10, 10, 0, 0])


def test_images_are_alike_by_what_they_differ_from_others():
    """A large constant that all images have is no reason to take them for the same."""
    assert runs.alike([PICTURES], [PICTURES], 0.0) == [True] * 3
    near = seen([1, 10, 0, 10], [10, 0, 0, 10], [0, 0, 10, 10])
    assert runs.alike([near], [PICTURES], 0.1) == [True, True, False]
    assert runs.alike([near], [PICTURES], 0.0) == [False, True, False]
    large = [[value + 1e5 * (n == 3) for n, value in enumerate(one.thinned)] for one in near]
    others = seen(*([*one.thinned[:3], one.thinned[3] + 1e5] for one in PICTURES))
    assert runs.alike([seen(*large)], [others], 0.1) == [True, True, False]


def test_images_of_other_shapes_are_not_alike():
    """However small they are, and where there is no other image to compare with."""
    other = seen([0, 10, 0, 10], [10, 0, 0, 10], [10, 10, 0, 1], shape=(4, 1, 1))
    assert runs.alike([other], [PICTURES], 0.5) == [False] * 3
    assert runs.alike([seen([0, 1, 1, 1])], [seen([0, 1, 1, 2])], 0.5) == [False]


def test_equal_images_of_other_windows_are_not_alike():
    """A graph may cut the same thumbnail out of less: what decoders gave it and sizes on the way are compared too."""
    near = seen([0, 10.5, 0, 10], [10, 0, 0, 10], [0, 0, 10, 10])
    assert runs.alike([PICTURES, near], [PICTURES, PICTURES], 0.1) == [True, True, False]
    assert runs.alike([PICTURES, near], [PICTURES, PICTURES], 0.0) == [False, True, False]
    sizes = [runs.Seen((40, 30, 3)), runs.Seen((40, 30, 3)), runs.Seen((8, 8, 3))]
    assert runs.alike([PICTURES, sizes], [PICTURES, [sizes[0]] * 3], 0.5) == [True, True, False]


def test_an_image_resembles_the_cpus_on_files_and_twins():
    """Decoders may differ by more than what is done with the same pixels."""
    both = experiments.Experiments.__new__(experiments.Experiments)
    both.samples = 3
    decoded = seen([1.5, 10, 0, 10], [10, 0, 0, 10], [10, 10, 0, 0])
    cpu = [PICTURES + PICTURES]
    assert both.resembling([decoded + PICTURES], cpu) == 3
    assert both.resembling([PICTURES + decoded], cpu) == 2
    assert both.resembling([*cpu, PICTURES + PICTURES[::-1]], [*cpu, *cpu]) == 1
