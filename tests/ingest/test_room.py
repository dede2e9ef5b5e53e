"""A submission that fills its workspace is refused before anything runs, and says what fits."""

import pytest

from grader_service.errors import SubmissionRejected
from grader_service.ingest.room import require_room


def test_what_fits_is_taken(tmp_path):
    """Also when it is nothing at all."""
    require_room(tmp_path, 64, 1000)
    (tmp_path / "submission.py").write_bytes(bytes(1 << 20))
    require_room(tmp_path, 64, 1000)


def test_too_many_bytes(tmp_path):
    """Small files take a page each."""
    (tmp_path / "big.bin").write_bytes(bytes(65 << 20))
    with pytest.raises(SubmissionRejected) as refused:
        require_room(tmp_path, 64, 1000)
    assert refused.value.code == "submission.no_room"
    assert "65 MiB" in refused.value.feedback
    assert "64 MiB" in refused.value.feedback


def test_too_many_files(tmp_path):
    """Folders count too, as they do in the workspace."""
    for number in range(60):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "a").touch()
    require_room(tmp_path, 64, 121)
    with pytest.raises(SubmissionRejected):
        require_room(tmp_path, 64, 120)
