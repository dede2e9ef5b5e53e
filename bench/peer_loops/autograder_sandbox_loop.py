"""autograder-sandbox: a container per submission, the file copied in, one command run, the container destroyed.

python autograder_sandbox_loop.py IMAGE SUBMISSION
"""

import sys
from collections.abc import Callable

from autograder_sandbox import AutograderSandbox
from turns import take_turns


def grade(told: Callable[[], None]) -> str:
    """One submission, from nothing to nothing; the result is there before the container is stopped."""
    with AutograderSandbox(docker_image=sys.argv[1]) as sandbox:
        sandbox.add_files(sys.argv[2])
        done = sandbox.run_command(["python3", "submission.py"], timeout=10, check=True)
        said = str(done.stdout.read().decode())
        told()
        return said


if __name__ == "__main__":
    take_turns(grade)
