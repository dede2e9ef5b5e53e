"""What a measurement needs of scipy is imported in a thread, and not before a run will be measured."""

import json
import subprocess
import sys

SCRIPT = """
import json, sys
import grader_service.measure.measuring
from grader_service.held_out.libraries import import_ahead

before = [name for name in sys.modules if name.startswith("scipy")]
threads = {import_ahead(), import_ahead()}
for thread in threads:
    thread.join()
after = [name for name in ("scipy.special", "scipy.fft", "scipy.spatial") if name in sys.modules]
print(json.dumps([before, len(threads), after]))
"""


def test_scipy_is_imported_ahead_once_and_on_request():
    """The modules of a run load none of it; `import_ahead` loads all of it, once, however often it is called."""
    told = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, timeout=120)
    assert json.loads(told.stdout) == [[], 1, ["scipy.special", "scipy.fft", "scipy.spatial"]]
