"""Folders of ours have the names that learners know in all that is told of a run."""

from grader_service.model.discovery import NameFacts, PathClaim
from grader_service.run.scrubbing import Scrubber
from sandbox.api import GuestPaths
from tests.factories import a_discovery, a_loader, a_pipeline

OURS = "/var/tmp/grader-x/runs/y"
SCRUBBER = Scrubber(
    GuestPaths(*(f"{OURS}/{name}" for name in ("workspace", "tmp", "shm", "submission", "shards", "d")))
)


def test_every_folder_that_a_discovery_names_is_told_by_its_known_name():
    """The set's, both sides', and those of variables; nothing else changes."""
    here, there = f"{OURS}/workspace/data", f"{OURS}/tmp/val"
    told = SCRUBBER.discovery(
        a_discovery(
            dataset_dir=PathClaim(status="present", path=here, shown=here),
            loaders=(a_loader(dataset_root=here),),
            pipelines=(a_pipeline(reader_root=there),),
            names=(NameFacts(name="root", kind="folder", count=3, shown=here), NameFacts(name="rate", kind="number")),
        )
    )
    assert told == a_discovery(
        dataset_dir=PathClaim(status="present", path="/workspace/data", shown="/workspace/data"),
        loaders=(a_loader(dataset_root="/workspace/data"),),
        pipelines=(a_pipeline(reader_root="/tmp/val"),),
        names=(
            NameFacts(name="root", kind="folder", count=3, shown="/workspace/data"),
            NameFacts(name="rate", kind="number"),
        ),
    )


def test_what_has_no_folder_stays():
    """A name that is missing, a loader without a root."""
    plain = a_discovery(dataset_dir=PathClaim(status="missing"))
    assert SCRUBBER.discovery(plain) == plain


def test_only_whole_paths_are_renamed_and_no_text_grows():
    """A learner may have a folder of the same name anywhere, and fields of evidence have their limits."""
    docker = Scrubber(GuestPaths("/workspace", "/tmp", "/dev/shm", "/submission", "/grader/shards", "/data"))
    for own in ("/workspace/grader/data.py", "/workspace/grader_lab/images", "/home/grader/x", "/grader_lab"):
        assert docker.text(own) == own
    assert docker.text('File "/submission/a.py", line 1') == 'File "/workspace/a.py", line 1'
    assert docker.text("no /grader/shards/held.bin there") == "no (of the grader)/held.bin ther"
    many = "/grader " * 20
    assert len(docker.text(many)) <= len(many)
