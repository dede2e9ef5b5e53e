"""Output geometry: what two loaders deliver, compared in words."""

import pytest

from grader_service.model.batch_geometry import geometry_difference


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ((32, 3, 224, 224), (64, 3, 224, 224), None),
        ((32, 224, 224, 3), (32, 3, 224, 224), None),
        ((32, 3, 224, 224), (32, 3, 232, 216), None),
        ((32, 3, 224, 224), (32, 1000), None),
        ((32, 3, 224, 224), (), None),
        ((32, 3, 224, 224), (0, 3, 10, 10), None),
        ((32, 3, 64, 64), (32, 3, 224, 224), "DALI delivers 64 × 64 pixels and your DataLoader 224 × 224"),
        ((32, 224, 96, 3), (32, 3, 224, 224), "224 × 96"),
        ((32, 1, 224, 224), (32, 3, 224, 224), "1 channels"),
    ],
)
def test_a_smaller_output_is_put_into_words(ours, theirs, words):
    """Size and channels are each said with both numbers.

    Batch size, layout and a few pixels are no difference; a shape that is no image batch says nothing.
    """
    said = geometry_difference(ours, theirs)
    assert (said is None) == (words is None)
    assert (words or "") in (said or "")
