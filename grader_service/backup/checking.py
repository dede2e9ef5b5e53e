"""Reads a backup again, to know that it can be restored."""

from collections.abc import Callable

from grader_service.backup.making import digests_of
from grader_service.backup.place import Manifest, Place, artifact_file, reaching


def damaged(place: Place, manifest: Manifest, progress: Callable[[str], None]) -> list[str]:
    """Files of a backup, its artifacts among them, that are gone or not what was written.

    Raises:
        InfrastructureError: the place did not give them.
    """
    progress("files of the backup")
    found = place.damaged(manifest)
    if found:
        return found
    progress("artifacts")
    missing = set(manifest.missing_artifacts)
    with reaching(place.files.url):
        return [
            artifact_file(digest)
            for digest in digests_of(place, manifest)
            if digest not in missing and place.digest(artifact_file(digest)) != digest
        ]
