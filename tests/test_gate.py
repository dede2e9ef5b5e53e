"""What a grading costs over a bare `docker run` stays within its limits; see bench/gate.py."""

import subprocess
import sys

import pytest

from tests.levels.parts import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.mark.usefixtures("lab_image")
def test_a_grading_costs_what_it_did():
    """Ratios of the same rounds; it fails when the whole interval of one lies above its limit."""
    done = subprocess.run([sys.executable, "bench/gate.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
