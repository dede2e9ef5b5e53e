"""Names that may have been meant."""

import pytest

from checks.diagnosis.names import suggestion
from tests.checks.diagnosis.dali_names import FILE


@pytest.mark.slow
@pytest.mark.integration
def test_the_names_are_those_of_the_installed_dali(provoked):
    """`python -m tests.checks.diagnosis.dali_names` was run for the version that the lab's image has."""
    assert FILE.read_text() == provoked["names"]


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        ("operators", "randomresizedcrop", "fn.random_resized_crop"),
        ("operators", "crop_mirror_normalise", "fn.crop_mirror_normalize"),
        ("operators", "normalise", "fn.crop_mirror_normalize"),
        ("operators", "jpeg", "fn.decoders.image"),
        ("operators", "coinflip", "fn.random.coin_flip"),
        ("operators", "files", "fn.readers.file"),
        ("types", "FLOAT32", "types.FLOAT"),
        ("types", "Uint8", "types.UINT8"),
    ],
)
def test_a_misspelt_name_is_recognised(kind, written, meant):
    """Case, underscores and the spellings of other libraries do not hide what was meant."""
    assert suggestion(kind, {"name": written}).removesuffix("`.").endswith((f"`{meant}", f" {meant}."))


@pytest.mark.parametrize(
    ("schema", "written", "meant"),
    [
        ("readers__File", "shuffle", "random_shuffle"),
        ("readers__File", "fileroot", "file_root"),
        ("CropMirrorNormalize", "layout", "output_layout"),
        ("Resize", "sizes", "size"),
    ],
)
def test_a_misspelt_argument_is_recognised(schema, written, meant):
    """Arguments are looked for among those of the operator."""
    assert suggestion("arguments", {"name": written, "schema": schema}) == f"You may mean `{meant}`."


@pytest.mark.parametrize("written", ["zzzz", "", "{0}", "q" * 60])
def test_nothing_is_suggested_for_what_is_like_nothing(written):
    """A far-fetched name would mislead; so would a schema that is not known."""
    assert suggestion("operators", {"name": written}) == ""
    assert suggestion("arguments", {"name": written, "schema": "Resize"}) == ""
    assert suggestion("arguments", {"name": "size", "schema": "NoSuchOperator"}) == ""
