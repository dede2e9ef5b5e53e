"""The guest package as it is delivered into a run."""

import os
import stat

from sandbox.guest_code import GUEST_SOURCE, guest_digest, install_guest_code


def delivered(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_every_source_arrives_and_nothing_else(tmp_path):
    """No bytecode of ours, no notes; under a name that no learner's module has."""
    install_guest_code(tmp_path / "code")
    sources = sorted(f"grader_guest/{path.relative_to(GUEST_SOURCE)}" for path in GUEST_SOURCE.rglob("*.py"))
    assert delivered(tmp_path / "code") == sources
    assert "grader_guest/boot.py" in sources


def test_a_pods_uid_can_read_it(tmp_path):
    """Whatever the umask is."""
    before = os.umask(0o077)
    try:
        install_guest_code(tmp_path / "code")
    finally:
        os.umask(before)
    for path in [tmp_path / "code", *(tmp_path / "code").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644)


def test_the_digest_is_of_names_and_bytes(tmp_path, monkeypatch):
    """A changed line and a moved file both change it."""
    monkeypatch.setattr("sandbox.guest_code.GUEST_SOURCE", tmp_path)
    seen = set()
    for name, text in (("a.py", "x"), ("a.py", "y"), ("b.py", "x"), ("bx.py", ""), ("b.py", "x\0")):
        for path in tmp_path.iterdir():
            path.unlink()
        (tmp_path / name).write_text(text)
        seen.add(guest_digest())
    assert len(seen) == 5
