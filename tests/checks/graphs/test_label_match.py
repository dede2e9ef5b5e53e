"""`label_match`: labels beside their own images, in a form that a loss takes."""

import pytest

from checks.label_match.agreement import agreement
from checks.label_match.check import label_match
from grader_service.model.verdict import Outcome
from tests.checks.graphs.control_tests import test_control, test_figures_in_the_docstring  # noqa: F401 - of CONTROLS
from tests.checks.graphs.controls import CONDITIONS, CROP, NORMALISE, RESIZE, TRIVIAL, USUAL, Control, Controls
from tests.checks.graphs.graphs import bare

OTHER = 'other, strangers = fn.readers.file(file_root=dataset_dir, random_shuffle=True, name="Other")'
SVHN = "from nvidia.dali.auto_aug import auto_augment\nimages = auto_augment.auto_augment(images, 'svhn')"
PERMUTED = "images, fn.permute_batch(labels, indices=fn.batch_permutation())"
CONTROLS = Controls(
    label_match,
    "labels",
    [
        *USUAL,
        Control("squeezed", bare(RESIZE, returned="images, fn.squeeze(labels, axes=[0])"), "ok", {"shape": "[N]"}),
        Control("64 bits", bare(RESIZE, NORMALISE, returned="images, fn.cast(labels, dtype=types.INT64).gpu()"), "ok",
                {"dtype": "int64", "device": "gpu"}),
        Control("labels first, as wanted", bare(RESIZE, returned="labels, images"), "ok",
                {"outputs": "labels_images", "device": "cpu"}),
        Control("counted from one", bare(RESIZE, returned="images, labels + 1"), "ok"),
        Control("inverted now and then", bare(CROP, SVHN, NORMALISE, options=CONDITIONS + ", seed=21"), "ok"),
        Control("both permuted alike", bare(RESIZE, "order = fn.batch_permutation()",
                "images = fn.permute_batch(images, indices=order)",
                returned="images, fn.permute_batch(labels, indices=order)"), "ok"),
        Control("labels of another reader, behind an automatic augmentation", bare(CROP, OTHER, TRIVIAL, NORMALISE,
                options=CONDITIONS + ", seed=2", returned="images, strangers"), "mismatch"),
        Control("labels of another reader", bare(RESIZE, OTHER, returned="images, strangers.gpu()"), "mismatch"),
        Control("labels permuted", bare(RESIZE, returned=PERMUTED), "mismatch"),
        Control("images permuted", bare(RESIZE, "images = fn.permute_batch(images, indices=fn.batch_permutation())"),
                "mismatch"),
        Control("labels by chance", bare(RESIZE, returned="images, fn.cast(fn.random.uniform(range=(0, 6.4)), "
                "dtype=types.INT32)"), "mismatch"),
        Control("only images", bare(RESIZE, returned="images"), "missing"),
        Control("no class numbers", bare(RESIZE, returned="images, labels * 10"), "not_classes"),
        Control("one label for all", bare(RESIZE, returned="images, labels * 0"), "not_classes"),
        Control("one-hot", bare(RESIZE, returned="images, fn.one_hot(labels, num_classes=7)"), "shape"),
        Control("floating point", bare(RESIZE, returned="images, fn.cast(labels, dtype=types.FLOAT)"), "dtype"),
        Control("labels first", bare(RESIZE, returned="labels, images"), "order"),
        Control("on the CPU where the GPU is wanted", bare(RESIZE, returned="images, labels"), "device",
                {"device": "gpu"}),
    ],
    further=[
        # Where every image is the same, a label can belong to any of them.
        Control("images without differences", bare(RESIZE, "images = fn.normalize(images)"), "images_alike",
                outcome=Outcome.UNVERIFIED),
        # Images that may be inverted or equalised are no proof against the labels, unless there is a second reader.
        Control("labels permuted, behind an automatic augmentation", bare(CROP, TRIVIAL, NORMALISE,
                options=CONDITIONS + ", seed=5", returned=PERMUTED), "unclear", outcome=Outcome.INCONCLUSIVE),
    ],
)  # fmt: skip


def test_a_shift_of_some_labels_is_found():
    """Three labels in twenty that belong elsewhere lower the share by as much."""
    levels = (96, 240, 24, 168, 60)
    labels = [float(number % 5) for number in range(100)]
    means = [0.01 * levels[int(label)] - 1.0 for label in labels]
    whole = agreement(levels, labels, means)
    assert whole is not None
    assert whole.share == 1.0
    wrong = [(label + 1) % 5 if number % 20 < 3 else label for number, label in enumerate(labels)]
    some = agreement(levels, wrong, means)
    assert some is not None
    assert some.share == pytest.approx(0.85)


def test_two_readers_are_named(workshop):
    """The feedback says that two readers shuffle apart, and where they stand."""
    result = workshop.judge(bare(RESIZE, OTHER, returned="images, strangers.gpu()"), label_match)
    assert "2 readers" in result.parts.seen
    assert result.parts.next is not None
    assert result.parts.next.place is not None
    assert result.parts.next.place.file == "submission.py"
