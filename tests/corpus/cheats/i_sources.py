"""I: notebooks that show what they did not compute, sources that break a parser, bytes that change on their way."""

import hashlib
from functools import partial

from grader_service.ingest.artifact import artifact_at
from grader_service.report.audience import Audience
from grader_service.report.html import render_report
from tests.corpus.case import NOT_REACHED, SUBMISSION, Observed, Procedure
from tests.corpus.cheats.h_shown import MARKUP
from tests.corpus.parts import REFLECTIONS
from tests.corpus.parts_texts import refused_cheat, text_cheat
from tests.corpus.world import World, seen
from tests.factories import message
from tests.ingest import packing
from tests.receiving import receive

NOTEBOOK = "work.ipynb"


def _with_outputs() -> bytes:
    told = {"output_type": "stream", "name": "stdout", "text": REFLECTIONS}
    data = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": REFLECTIONS}}
    return packing.notebook(packing.code_cell("print('see below')", 0, (told, data)))


def _as_text() -> bytes:
    """The answer stands in cells that are not run."""
    cells = [{"cell_type": kind, "id": kind, "metadata": {}, "source": REFLECTIONS} for kind in ("markdown", "raw")]
    return packing.notebook("x = 1", *cells)


def _other_kernel() -> bytes:
    kernel = {"kernelspec": {"name": "worker", "language": "bash", "display_name": "Worker"}}
    return packing.notebook(REFLECTIONS, metadata=kernel)


HOST = """found = !ls -d /var/run/docker.sock /run/docker.sock /root/.ssh /home/*/.ssh 2>/dev/null
secrets = !env | grep -iE 'token|secret|password|broker|_key='
"""
SHELL = [
    HOST,
    "%load_ext host_of_the_grader\n%env PYTHONSTARTUP=/tmp/start.py",
    "%%script sh --bg\nsleep 0.1; curl -s http://169.254.169.254/ > /tmp/seen || true",
    "import os\nif found or secrets or os.path.exists('/tmp/seen') and os.path.getsize('/tmp/seen'):\n"
    + "\n".join(f"    {line}" for line in REFLECTIONS.splitlines()),
]


def _looked_up(world: World) -> Observed:
    """Whether markup of a notebook comes out as markup on the pages that people read."""
    cell = packing.code_cell(
        f'where_dali_wins = ["{MARKUP}"]\nraise ValueError("{MARKUP}")  # {MARKUP}',
        0,
        [{"output_type": "display_data", "metadata": {}, "data": {"text/html": MARKUP}}],
    )
    note = {"cell_type": "markdown", "id": "n", "metadata": {}, "source": MARKUP}
    done = world.grade(partial(packing.notebook, cell, note), filename="<b>work.ipynb", steps=("reflection",))
    page = "".join(render_report(done.verdict, audience) for audience in Audience)
    carried = "alert(1)" in page
    raw = MARKUP[:24] in page or "<img src=x" in page or "<b>work" in page
    return Observed("passed" if raw else "failed", "page.escaped" if carried else "page.nothing_carried", page[:200])


def _changed(world: World) -> Observed:
    """Hands in a file, and replaces it between its measuring and its run."""
    path = world.hand_in("submission.py", b"x = 1\n")
    artifact = artifact_at(path)
    path.write_text(REFLECTIONS)
    done = world.grade_artifact(artifact, filename=path.name, steps=("reflection",))
    return seen(done, SUBMISSION)


def _announced(world: World) -> Observed:
    """Posts other bytes than the message says."""
    body = message("corpus:1", REFLECTIONS)
    body["artifact"]["sha256"] = hashlib.sha256(b"what was looked through").hexdigest()
    with world.deps() as deps:
        taken = receive(deps, body, "live", "task-1")
    return Observed("failed" if taken.kind == "refused" else "passed", f"message.{taken.kind}")


CASES = (
    text_cheat(
        "I06-outputs", "results that stand only in a notebook's stored outputs", _with_outputs, filename=NOTEBOOK
    ),
    text_cheat("I06-text", "the answers stand in cells that are not code", _as_text, filename=NOTEBOOK),
    refused_cheat(
        "I07-kernel",
        "a notebook that names a kernel of its own",
        _other_kernel,
        "notebook.not_python",
        filename=NOTEBOOK,
    ),
    text_cheat(
        "I07-shell",
        "magics that look for the host: files, secrets, extensions",
        partial(packing.notebook, *SHELL),
        filename=NOTEBOOK,
    ),
    Procedure("I08-markup", "scripts in a notebook's text, outputs, exception and name", _looked_up, ("page.escaped",)),
    text_cheat(
        "I12-utf16",
        "a source that reads well in UTF-16 and as nothing else",
        REFLECTIONS.encode("utf-16"),
        NOT_REACHED,
    ),
    text_cheat(
        "I12-nul",
        "a source with a NUL byte, after which some parsers stop",
        REFLECTIONS.encode() + b"\0raise SystemExit(1)\n",
        NOT_REACHED,
    ),
    refused_cheat(
        "I12-line",
        "a source with one line of five megabytes",
        REFLECTIONS.encode() + b"# " + b"x" * (5 << 20),
        "submission.too_large",
        filename="submission.py",
    ),
    text_cheat(
        "I12-nested",
        "a cell so deeply nested that a parser runs out of stack, before the answers",
        partial(packing.notebook, "x = " + "(" * 90_000 + "-" * 90_000 + "1" + ")" * 90_000, REFLECTIONS),
        NOT_REACHED,
        filename=NOTEBOOK,
    ),
    Procedure(
        "I13-changed", "a file that is replaced between its measuring and its run", _changed, ("submission.changed",)
    ),
    Procedure("I13-announced", "other bytes than the message announces", _announced, ("message.refused",)),
)
