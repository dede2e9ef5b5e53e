"""The wheel that is built of this repository: what users install has its types, its licence and its version."""

import zipfile
from email.parser import HeaderParser

import pytest
from hatchling.builders.wheel import WheelBuilder

from grader_service import __version__
from tests.levels.parts import ROOT

PACKAGES = ("grader_service", "sandbox", "checks", "images")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of this tree, opened; `uv build` makes the same one."""
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    with zipfile.ZipFile(built) as opened:
        yield opened


def inside(name):
    """The path of a file in the folder with the wheel's metadata."""
    return f"grader_service-{__version__}.dist-info/{name}"


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_read_our_annotations(wheel, package):
    """PEP 561: without this marker a type checker takes everything that is imported from a package for `Any`."""
    assert f"{package}/py.typed" in wheel.namelist()


def test_every_package_is_in_the_wheel(wheel):
    """Nothing else is at its top: no tests, no benches."""
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {*PACKAGES, f"grader_service-{__version__}.dist-info"}


def test_the_licence_comes_along(wheel):
    """PEP 639: its SPDX expression is in the metadata, and its text beside it."""
    said = HeaderParser().parsestr(wheel.read(inside("METADATA")).decode())
    assert (said["License-Expression"], said["License-File"]) == ("Apache-2.0", "LICENSE")
    assert wheel.read(inside("licenses/LICENSE")) == (ROOT / "LICENSE").read_bytes()


def test_there_is_one_version(wheel):
    """The package's own, the wheel's, and that of the newest release in the changelog."""
    said = HeaderParser().parsestr(wheel.read(inside("METADATA")).decode())
    assert said["Version"] == __version__
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## [")]
    released = [line for line in headings if not line.startswith("## [Unreleased]")]
    assert released[0].startswith(f"## [{__version__}] - ")
