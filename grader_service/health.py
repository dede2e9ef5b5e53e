"""`python -m grader_service.health`: whether a worker looked round lately, and whether it can do its work.

For health checks of containers and pods. It imports nothing but the standard library: beside the whole command line it
costs a tenth, and every worker of a host is asked several times a minute.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from grader_service import state_folder
from grader_service.service import pulse


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what the worker said; 0 when it is well, else 1."""
    options = parser().parse_args(arguments)
    file = pulse.ANY if options.device is None else pulse.of_device(options.device)
    if options.regrade:
        file = pulse.REGRADE
    well, text = _answer(file, options.max_age, only_alive=options.question == "alive")
    sys.stdout.write(text + "\n")
    return 0 if well else 1


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    made = argparse.ArgumentParser(prog="python3 -m grader_service.health", description=__doc__)
    made.add_argument(
        "question",
        choices=("alive", "ready"),
        help="alive: its loop goes round, for liveness checks. ready: it can do its work as well.",
    )
    whom = made.add_mutually_exclusive_group()
    whom.add_argument("--regrade", action="store_true", help="ask for the worker that re-grades")
    whom.add_argument("--device", help="ask for the runner of this device, where several share a state folder")
    made.add_argument("--max-age", type=float, default=60.0, help="seconds since the worker last looked round")
    return made


def _answer(file: str, max_age_s: float, *, only_alive: bool) -> tuple[bool, str]:
    state_dir = Path(os.environ.get("GRADER_STATE_DIR") or state_folder.default())
    said = pulse.last(state_dir, file)
    if said is None or said.age_s > max_age_s:
        found = ["no worker has looked round"]
        if said is not None:
            found = [f"{found[0]} for {said.age_s:.0f} s", *said.problems]
        if (problem := state_folder.misfit(state_dir)) is not None:
            found.append(f"state folder: {problem}")
        return False, "; ".join(found)
    if said.problems and not only_alive:
        return False, "not ready: " + "; ".join(said.problems)
    return True, f"looked round {said.age_s:.0f} s ago"


if __name__ == "__main__":
    sys.exit(main())
