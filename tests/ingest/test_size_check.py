"""A submission that fills its workspace is refused before anything runs, and says what fits."""

from grader_service.ingest.size_check import require_fits
from tests.ingest.packing import refusal


def test_what_fits_is_taken(tmp_path):
    """Also when it is nothing at all."""
    require_fits(tmp_path, 64, 1000)
    (tmp_path / "submission.py").write_bytes(bytes(1 << 20))
    require_fits(tmp_path, 64, 1000)


def test_too_many_bytes(tmp_path):
    """Small files take a page each."""
    (tmp_path / "big.bin").write_bytes(bytes(65 << 20))
    code, feedback = refusal(require_fits, tmp_path, 64, 1000)
    assert code == "submission.no_room"
    assert "65 MiB" in feedback
    assert "64 MiB" in feedback


def test_too_many_files(tmp_path):
    """Folders count too, as they do in the workspace."""
    for number in range(60):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "a").touch()
    require_fits(tmp_path, 64, 121)
    refusal(require_fits, tmp_path, 64, 120)
