"""The build context is packed as it is, and what tar complains of ends the build unless it is about links alone."""

import tarfile

import pytest

from grader_service.errors import InfrastructureError
from images import build


def packed(folder):
    """Names in the stream of a folder."""
    with build._tar_stream(folder) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        return [member.name for member in archive]


@pytest.fixture
def complaining(tmp_path, monkeypatch):
    """Puts a tar in front that packs, says these lines and ends with 1."""

    def put(*lines):
        program = tmp_path / "bin" / "tar"
        program.parent.mkdir()
        said = "\n".join(f"echo '{line}' >&2" for line in lines)
        program.write_text(f'#!/bin/sh\n/bin/tar "$@"\n{said}\nexit 1\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    return put


@pytest.fixture
def context(tmp_path):
    """A folder with one file."""
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "a").write_text("a")
    return folder


def test_a_package_that_is_linked_elsewhere_meanwhile_is_packed(context, complaining):
    """Another environment that is set up from the same cache changes the number of links only."""
    assert packed(context) == [".", "./a"]
    complaining("tar: ./a: file changed as we read it")
    assert packed(context) == [".", "./a"]


def test_a_file_that_shrinks_ends_the_build(context, complaining):
    """With what tar said."""
    complaining("tar: ./a: file changed as we read it", "tar: ./a: File shrank by 7 bytes; padding with zeros")
    with pytest.raises(InfrastructureError, match="shrank by 7 bytes"):
        packed(context)
