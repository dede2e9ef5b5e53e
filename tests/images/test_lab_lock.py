"""A lab image with the packages of another lock: what it takes, and that labs keep the image that they have."""

from dataclasses import replace

import pytest

from grader_service.errors import ConfigurationError
from images.build import RECIPES, build, lab_with, recipe_digest
from tests.command_line import invoked

SHIPPED = RECIPES["lab"].lock


def lock_of(folder, *names):
    """A lock that pins these packages."""
    path = folder / "lab.txt"
    path.write_text("".join(f"{name} \\\n    --hash=sha256:{'0' * 64}\n" for name in names))
    return path


@pytest.mark.parametrize("dali", ["nvidia-dali-cuda120", "nvidia-dali-cuda130"])
def test_another_lock_makes_another_image(tmp_path, dali):
    """Wherever it lies; the same lock in another place makes the same image."""
    recipe = lab_with(lock_of(tmp_path, "torch==9.9", "torchvision==9.9", f"{dali}==9.9"))
    assert (recipe.name, recipe.latest) == ("grader-lab", False)
    assert recipe_digest(recipe) != recipe_digest(RECIPES["lab"])
    copy = tmp_path / "copy.txt"
    copy.write_bytes(SHIPPED.read_bytes())
    assert recipe_digest(lab_with(copy)) == recipe_digest(RECIPES["lab"])


def test_a_lock_that_makes_no_lab_image_is_refused(tmp_path):
    """With what it lacks, before anything is fetched."""
    with pytest.raises(ConfigurationError, match=r"lacks torchvision, nvidia-dali\. .*requirements\.in"):
        lab_with(lock_of(tmp_path, "torch==9.9", "torchvision-extra==9.9"))
    plain = tmp_path / "plain.txt"
    plain.write_text("torch==9.9\ntorchvision==9.9\nnvidia-dali-cuda120==9.9\n")
    with pytest.raises(ConfigurationError, match="with hashes, and lacks torch, torchvision, nvidia-dali"):
        lab_with(plain)


def test_the_command_says_what_is_built_of_it():
    """No service image is."""
    done = invoked("images", "build", "service", "--lab-lock", str(SHIPPED), status=2)
    assert "it is for the lab image; name `lab` or `all`" in done.output


def test_labs_keep_their_image(engine, lab_image, tmp_path):
    """One of another lock has a tag, which the command prints, and is no `latest`."""
    recipe = lab_with(lock_of(tmp_path, "torch==9.9", "torchvision==9.9", "nvidia-dali-cuda120==9.9"))
    recipe = replace(recipe, name="grader-test-lab")
    tag = f"{recipe.name}:{recipe_digest(recipe)[:12]}"
    image = engine.images.get(lab_image)  # as if it had been built of that lock
    image.tag(tag)
    try:
        assert build(engine, [recipe], base_kind="auto", rebuild=False, say=print) == {tag: image.id}
        names = engine.images.get(tag).tags
        assert f"{recipe.name}:latest" not in names
    finally:
        engine.images.remove(tag)
