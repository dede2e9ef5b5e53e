"""Who may read files of a store in a folder."""

import os

import pytest

from grader_service.store.files import Files


@pytest.mark.parametrize(("folder", "file"), [(0o750, 0o600), (0o2750, 0o640)], ids=["of one user", "of a group"])
def test_who_may_read(tmp_path, folder, file):
    """Their owner alone, but in a folder whose files are its group's."""
    tmp_path.chmod(folder)
    Files(f"file://{tmp_path}").put("ab/x", b"1")
    assert os.stat(tmp_path / "ab" / "x").st_mode & 0o7777 == file
