"""First file that runs in a pod: puts our package on the path, connects to the host and starts one guest program.

boot.py PROGRAM        such as `trusted.scanner` or `learner.main`
"""

import importlib
import os
import sys


def main() -> None:
    """Connects, then hands over to `PROGRAM.run(link)`; leaves without running exit handlers."""
    here = os.path.dirname(os.path.abspath(__file__))
    # Appended, so that nothing of ours hides a module of the image or of the learner.
    sys.path.append(os.path.dirname(here))
    package = os.path.basename(here)
    channel = importlib.import_module(f"{package}.channel")
    program = importlib.import_module(f"{package}.{sys.argv[1]}")
    link = channel.connect(os.environ.pop("GRADER_LINK"))
    program.run(link)
    sys.stdout.flush()
    sys.stderr.flush()
    # DALI and torch threads may hang or crash at interpreter teardown; all that matters has been sent.
    os._exit(0)


if __name__ == "__main__":
    main()
