"""Trial images: the same names in every part, other images in each, and nothing to be seen before its time."""

import pytest

from grader_service.measure.trial_shards import TrialShards
from grader_service.model.evidence import ImageSize

SEED = "cd" * 16
SIZES = (ImageSize(width=120, height=100, size_bytes=5000),)


def contents(folder):
    """Relative path to bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.jpg"))}


@pytest.fixture
def folder(tmp_path):
    """The pods' folder."""
    made = tmp_path / "shards"
    made.mkdir()
    return made


def test_a_part_takes_the_place_of_the_last_one(folder):
    """Names stay, every file is another one, and a part that was made is nowhere in the pods' folder until shown."""
    with TrialShards(SEED, SIZES, 8, 3, folder) as shards:
        assert shards.make_next() == 0
        assert list(folder.iterdir()) == []
        assert shards.show() == "live"
        first = contents(folder / "live")
        shards.make_next()
        assert contents(folder / "live") == first
        assert (shards.show(), shards.shown) == ("live", 1)
        second = contents(folder / "live")
    assert list(first) == list(second)
    assert len(first) == 8
    assert not set(first.values()) & set(second.values())


def test_a_new_name_leaves_the_old_folder(folder):
    """A loader that is built anew gets a folder that no cache knows by its path."""
    with TrialShards(SEED, SIZES, 4, 3, folder) as shards:
        shards.make_next()
        shards.show()
        shards.make_next()
        assert shards.show(under_new_name=True) == "live-1"
        assert {path.name for path in folder.iterdir()} == {"live", "live-1"}


def test_a_plan_is_used_up(folder):
    """A plan has room for 8,192 images: fewer parts fit where parts are large, and then there are no more."""
    assert TrialShards(SEED, SIZES, 4000, 20, folder).parts == 2
    few = TrialShards(SEED, SIZES, 2, 1, folder)
    assert few.make_next() == 0
    assert few.make_next() is None
    few.close()


def test_images_differ_from_those_of_the_clean_room(folder):
    """The run's seed gives tier A's images, which pods have seen; the trials' come from another one."""
    shards = TrialShards(SEED, SIZES, 4, 2, folder)
    assert shards.plan.seed != SEED
    assert shards.plan.seed == TrialShards(SEED, SIZES, 4, 2, folder).plan.seed
    shards.close()


def test_nothing_hidden_is_left(folder, tmp_path):
    """Closing deletes what was kept from pods, also when nothing was made."""
    with TrialShards(SEED, SIZES, 2, 2, folder) as shards:
        shards.make_next()
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]
    shards.close()
