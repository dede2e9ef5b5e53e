"""coursera-autograder: a container per submission, whose grader writes feedback that is copied out.

python coursera_autograder_loop.py IMAGE SUBMISSION_FOLDER
"""

import json
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from coursera_autograder.commands import grade as command
from turns import take_turns


def grade(_: object) -> str:
    """What `coursera_autograder grade local` does, without the start of an interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        command.command_grade_local(
            Namespace(
                docker_url=None,
                timeout=60,
                mem_limit=1024,
                containerTag=sys.argv[1],
                dir=sys.argv[2],
                dst_dir=folder,
                envVar="{}",
                no_rm=False,
            )
        )
        return str(json.loads(Path(folder, "feedback.json").read_text())["feedback"])


if __name__ == "__main__":
    take_turns(grade)
