"""Output geometry: what two loaders deliver, compared in words."""

import pytest

from grader_service.batch_geometry import geometry_difference


@pytest.mark.parametrize(
    ("ours", "dtype", "theirs", "torch_dtype", "words"),
    [
        ((32, 3, 224, 224), "FLOAT", (64, 3, 224, 224), "torch.float32", None),
        ((32, 224, 224, 3), "FLOAT", (32, 3, 224, 224), "torch.float32", None),
        ((32, 3, 224, 224), "FLOAT", (32, 3, 232, 216), "", None),
        ((32, 3, 224, 224), "FLOAT16", (32, 3, 224, 224), "torch.float16", None),
        ((32, 3, 224, 224), "FLOAT", (32, 1000), "", None),
        ((32, 3, 224, 224), "FLOAT", (), "", None),
        ((32, 3, 224, 224), "FLOAT", (0, 3, 10, 10), "", None),
        ((32, 3, 64, 64), "FLOAT", (32, 3, 224, 224), "", "DALI delivers 64 × 64 pixels and your DataLoader 224 × 224"),
        ((32, 224, 96, 3), "FLOAT", (32, 3, 224, 224), "", "224 × 96"),
        ((32, 1, 224, 224), "FLOAT", (32, 3, 224, 224), "", "1 channels"),
        ((32, 3, 224, 224), "UINT8", (32, 3, 224, 224), "torch.float32", "UINT8 values and your DataLoader FLOAT"),
    ],
)
def test_a_smaller_output_is_put_into_words(ours, dtype, theirs, torch_dtype, words):
    """Size, channels and type are each said with both numbers.

    Batch size, layout and a few pixels are no difference; a shape that is no image batch says nothing.
    """
    said = geometry_difference(ours, dtype, theirs, torch_dtype)
    assert (said is None) == (words is None)
    assert (words or "") in (said or "")
