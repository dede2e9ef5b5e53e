"""Whether an unpacked submission fits into the workspace that it is copied to, before anything is started."""

import stat
from pathlib import Path

from grader_service.errors import SubmissionRejected

_PAGE = 4096
"""A file in memory takes whole pages."""


def require_fits(folder: Path, workspace_mib: int, workspace_inodes: int) -> None:
    """Refuses what would fill the workspace, where the learner's own code needs space too.

    Raises:
        SubmissionRejected: `submission.no_room`.
    """
    entries = pages = 0
    for path in folder.rglob("*"):
        entries += 1
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            pages += -(-status.st_size // _PAGE)
    if pages * _PAGE >= workspace_mib << 20 or entries >= workspace_inodes:
        raise SubmissionRejected(
            "submission.no_room",
            f"The unpacked submission takes {pages * _PAGE / 2**20:.0f} MiB in {entries} files and folders; the "
            f"workspace that it runs in holds {workspace_mib} MiB and {workspace_inodes} files and folders. Leave out "
            "what the lab does not need, such as data sets: the lab hands out JPEGs in the folder that "
            "GRADER_DATA_DIR names, and your code may write its own.",
        )
