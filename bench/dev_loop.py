"""How soon after a save an author sees the result, in `grader checks dev` at a terminal.

    python bench/dev_loop.py [--saves 20]

Makes a check by `grader checks new`, and starts the command in a pseudo-terminal with a small submission. Each save
changes the sentence that a learner reads; the time ends when the new sentence stands in the terminal. The first
result, for which the submission is run, is shown beside it. Exit status 1 when the median is above a second.
"""

import argparse
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GRADER = str(Path(sys.executable).with_name("grader"))
SUBMISSION = "from torch.utils.data import DataLoader\n\nloader = DataLoader([1, 2, 3, 4], num_workers=1)\n"
TARGET_S = 1.0
_LONGEST_S = 120.0
_FIRST = "has enough workers."


def main() -> int:
    """Prints both figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saves", type=int, default=20)
    saves = parser.parse_args().saves
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([GRADER, "checks", "new", "enough_workers"], cwd=folder, check=True, capture_output=True)
        check, text = folder / "enough_workers.py", (folder / "enough_workers.py").read_text()
        (folder / "submission.py").write_text(SUBMISSION)
        ours, theirs = pty.openpty()
        begun = time.monotonic()
        command = [GRADER, "checks", "dev", check.name, "submission.py"]
        process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        try:
            _until(ours, _FIRST, begun)
            first, seconds = time.monotonic() - begun, []
            for number in range(saves):
                print(f"\rsave {number + 1} of {saves}", end="", file=sys.stderr)
                sentence = f"has enough workers, save {number + 1}."
                begun = time.monotonic()
                check.write_text(text.replace(_FIRST, sentence))
                _until(ours, sentence, begun)
                seconds.append(time.monotonic() - begun)
                time.sleep(0.2 + 0.1 * number / saves)  # at every moment between two looks at the file
        finally:
            process.kill()
            process.wait()
    middle, slowest = statistics.median(seconds), max(seconds)
    print(f"\nfirst result, with a run of the submission   {first:6.2f} s")
    print(f"from a save to its result, {saves} saves          {middle:6.2f} s   slowest {slowest:.2f} s")
    return 0 if middle <= TARGET_S else 1


def _until(terminal: int, end: str, begun: float) -> None:
    """Reads until this was shown."""
    shown = ""
    while end not in shown:
        if time.monotonic() - begun > _LONGEST_S:
            raise TimeoutError(f"nothing more after: {shown[-500:]}")
        if select.select([terminal], [], [], 0.01)[0]:
            shown += os.read(terminal, 65536).decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
