"""autograder-sandbox: a container per submission, the file copied in, one command run, the container destroyed.

python autograder_sandbox_loop.py IMAGE SUBMISSION
"""

import sys

from autograder_sandbox import AutograderSandbox
from turns import take_turns


def grade() -> str:
    """One submission, from nothing to nothing."""
    with AutograderSandbox(docker_image=sys.argv[1]) as sandbox:
        sandbox.add_files(sys.argv[2])
        done = sandbox.run_command(["python3", "submission.py"], timeout=10, check=True)
        return str(done.stdout.read().decode())


if __name__ == "__main__":
    take_turns(grade)
