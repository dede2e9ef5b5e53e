"""Looking for garbage seldom is not looking never."""

import subprocess
import sys

CODE = """
import gc, weakref
from grader_service.host.garbage import look_seldom

class Ring:
    def __init__(self):
        self.own = self

look_seldom()
assert gc.get_freeze_count() > 0, "what was there before is looked at again and again"
alive, most = weakref.WeakSet(), 0
for _ in range(200_000):
    alive.add(Ring())
    most = max(most, len(alive))
print(most)
"""


def test_what_holds_itself_goes_in_the_end():
    """Of 200,000 rings at most some ten thousand are there at once, so that memory stays flat."""
    told = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert 5_000 < int(told.stdout) < 60_000
