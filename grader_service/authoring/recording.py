"""Keeps a submission and its result as a control of a check, so that the conformance suite holds the check to it."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from checks.api import Result
from checks.authoring.material import CONTROLS, CONTROLS_FILE
from grader_service.errors import UsageError

_UNFIT = re.compile(r"[^\w.-]+")


def record_control(check_file: Path, submission: Path, params: Mapping[str, Any], result: Result) -> Path:
    """Copies the submission beside the check and writes down how it has to come out.

    Args:
        check_file: of the check; controls lie in `controls` beside a `check.py`, else in `NAME/controls`.
        submission: what was judged.
        params: with which it was judged.
        result: what came out, which is what has to come out from now on.

    Returns:
        The copy. A submission that is recorded already with the same result is written once.

    Raises:
        UsageError: a file cannot be written.
    """
    home = check_file.parent if check_file.name == "check.py" else check_file.parent / check_file.stem
    folder = home / CONTROLS
    file = f"{result.outcome.value}/{_UNFIT.sub('_', submission.name)}"
    known = folder / CONTROLS_FILE
    entry = [
        "[[control]]",
        f"file = {json.dumps(file)}",
        f"outcome = {json.dumps(result.outcome.value)}",
        f"code = {json.dumps(result.code)}",
    ]
    if params:
        entry.append(f"params = {{ {', '.join(f'{name} = {json.dumps(value)}' for name, value in params.items())} }}")
    text = "\n".join(entry) + "\n"
    try:
        before = known.read_text(encoding="utf-8") if known.is_file() else ""
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(submission, folder / file)
        if text not in before:
            known.write_text(f"{before.rstrip()}\n\n{text}".lstrip(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error}") from error
    return folder / file
