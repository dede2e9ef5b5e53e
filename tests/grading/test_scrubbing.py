"""Folders of ours have the names that learners know in all that is told of a run."""

from grader_service.grading.scrubbing import Scrubber
from grader_service.model.discovery import NameFacts, PathClaim
from sandbox.api import GuestPaths
from tests.factories import a_discovery, a_loader, a_pipeline

OURS = "/var/tmp/grader-x/runs/y"
SCRUBBER = Scrubber(
    GuestPaths(*(f"{OURS}/{name}" for name in ("workspace", "tmp", "shm", "submission", "shards", "d")))
)


def test_every_folder_that_a_discovery_names_is_told_by_its_known_name():
    """The set's, both sides', and those of variables; nothing else changes."""
    here, there = f"{OURS}/workspace/data", f"{OURS}/tmp/val"
    told = SCRUBBER.places(
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
    assert SCRUBBER.places(plain) == plain
