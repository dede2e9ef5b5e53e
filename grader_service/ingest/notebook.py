"""Reads a notebook's code cells in order, as Python: stored outputs are ignored, magics become calls.

A cell that is Python already is left alone, byte for byte. For any other one IPython's own transformer does the work,
so that what counts as a magic is what a notebook counts as one.
"""

import ast
import json
import re
import warnings
from typing import Any, NoReturn

from IPython.core.inputtransformer2 import TransformerManager

from grader_service.errors import SubmissionRejected
from grader_service.ingest.limits import IngestLimits

# Cell magics that only wrap the cell: the cell runs as it stands, so that its line numbers stay right.
_TRANSPARENT = frozenset({"time", "timeit", "capture", "prun", "python", "python3"})
_MAX_WRAPPERS = 8
_MAX_MAGICS = 400
"""IPython rewrites a cell once per magic in it; more than this is not a notebook that a person wrote."""
# Lines that a notebook runs without a sign in front, if they are all that its cell holds ("automagic").
_BARE_MAGICS = frozenset({"pip", "conda", "mamba", "cd", "run", "env", "time", "timeit", "matplotlib", "load_ext"})
_BARE_COMMANDS = frozenset({"ls", "mkdir", "rmdir", "rm", "mv", "cp", "cat"})
_LANGUAGES = ("", "python", "python3", "ipython")
_TIMEIT_OPTIONS = re.compile(r"\s*(?:-[nrp]\s*\d+\s*|-[tcqov]+\s+|-[tcqov]+$)*")


def read_cells(data: bytes, limits: IngestLimits) -> list[tuple[int, str]]:
    """(1-based number among the code cells, Python source) of every code cell that is not empty.

    Raises:
        SubmissionRejected: with a `notebook.*` code.
    """
    notebook = _parse(data)
    language = _language(notebook.get("metadata", {}))
    if language not in _LANGUAGES:
        _reject("not_python", f"The notebook's language is {language!a}; expected Python. Use a Python kernel.")
    cells = [cell for cell in notebook.get("cells", []) if cell.get("cell_type") == "code"]
    if len(cells) > limits.cells:
        _reject(
            "too_many_cells",
            f"The notebook has {len(cells)} code cells; at most {limits.cells} are run. Join or remove some of them.",
        )
    sources = [(number, _source(cell, number)) for number, cell in enumerate(cells, 1)]
    _check_total(sources, limits)
    found = [(number, to_python(source)) for number, source in sources if source.strip()]
    _check_total(found, limits)
    if not found:
        _reject("no_code", "The notebook has no code cell with anything in it. Save it with your code and resend it.")
    return found


def to_python(source: str) -> str:
    """One cell's source with magics and shell lines as `get_ipython()` calls; plain Python is returned unchanged.

    Never fails on what is not Python: the run is to meet that error, at the learner's own line.

    Raises:
        SubmissionRejected: more magics than a person writes.
    """
    kept = ""
    for _ in range(_MAX_WRAPPERS):
        if _is_python(source):
            return kept + source
        lines = source.split("\n")
        first = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
        if first:
            # IPython drops leading blank lines, and with them the numbers of all others.
            kept += "\n" * first
            source = "\n".join(lines[first:])
        wrapper = _wrapper(lines[first]) if first < len(lines) else None
        if wrapper is None:
            return kept + _transform(source)
        kept += wrapper + "\n" * (len(lines) > first + 1)
        source = "\n".join(lines[first + 1 :])
    return _too_many_magics()


def _wrapper(line: str) -> str | None:
    """What stands in for a line such as `%%time`; None if it is not a cell magic that only wraps."""
    words = line[2:].split(maxsplit=1)
    if not line.startswith("%%") or not words or words[0] not in _TRANSPARENT:
        return None
    if words[0] == "timeit" and len(words) == 2:
        setup = _TIMEIT_OPTIONS.sub("", words[1], count=1).strip()
        if setup and _is_python(setup):
            return setup
    return f"# {line}"


def _transform(source: str) -> str:
    if sum(line.lstrip()[:1] in ("%", "!") for line in source.split("\n") if line.strip()) > _MAX_MAGICS:
        _too_many_magics()
    source = _with_sign(source)
    try:
        transformed = str(TransformerManager().transform_cell(source))
    except Exception:  # noqa: BLE001 - its tokenizer raises many kinds for text that is no code at all
        return source
    return transformed if "get_ipython()" in transformed or _is_python(transformed) else source


def _with_sign(source: str) -> str:
    line = source.strip()
    word, _, rest = line.partition(" ")
    if "\n" not in line and rest:
        if word in _BARE_MAGICS:
            return f"%{line}"
        if word in _BARE_COMMANDS:
            return f"!{line}"
    return source


def _is_python(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a learner's invalid escapes are theirs to see
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _parse(data: bytes) -> Any:
    """The notebook in the newest format, without its outputs, so that neither their size nor their form matters."""
    try:
        stored = json.loads(data)
    except (ValueError, RecursionError) as error:
        _reject("unreadable", f"The notebook is not valid JSON ({_reason(error)}). Save it again and resend it.")
    try:
        notebook = _newest(_without_outputs(stored))
        if any(not isinstance(cell, dict) for cell in notebook.get("cells", [])):
            raise TypeError("a cell is not an object")  # noqa: TRY301 - said in the same words as nbformat's own
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - nbformat raises many kinds for malformed notebooks
        _reject(
            "unreadable",
            f"This is not a notebook that can be read ({type(error).__name__}: {_reason(error)}). "
            "Save it from Jupyter as .ipynb and resend it.",
        )
    return notebook


def _newest(stored: Any) -> Any:
    if stored["nbformat"] != 4:
        import nbformat  # noqa: PLC0415 - takes longer than all the rest, and hardly any notebook is older

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # missing cell ids and the like
            return nbformat.reads(json.dumps(stored), as_version=4)
    for cell in stored["cells"]:
        if isinstance(cell.get("source"), list):  # as Jupyter writes it: a list of lines
            cell["source"] = "".join(cell["source"])
    return stored


def _without_outputs(stored: Any) -> Any:
    # Format 3 and older keep cells in worksheets.
    for sheet in [stored, *(stored.get("worksheets") or [])]:
        for cell in sheet.get("cells") or []:
            cell.pop("attachments", None)
            if "outputs" in cell:
                cell["outputs"] = []
    return stored


def _source(cell: dict[str, Any], number: int) -> str:
    source = cell.get("source", "")
    if not isinstance(source, str):
        _reject("unreadable", f"Code cell {number} holds no text. Save the notebook from Jupyter and resend it.")
    try:
        source.encode()
    except UnicodeEncodeError:
        _reject("unreadable", f"Code cell {number} has half a character (a lone surrogate). Remove it and resend.")
    return source


def _check_total(sources: list[tuple[int, str]], limits: IngestLimits) -> None:
    # As JSON, since that is how they travel to the pod.
    if sum(len(json.dumps(source)) for _, source in sources) > limits.source_bytes * 3 // 2:
        _reject(
            "too_large",
            f"The notebook's code is too large: at most {limits.source_bytes >> 20} MiB, less with many magics or "
            "special characters. Move data out of the code.",
        )


def _language(metadata: object) -> str:
    if not isinstance(metadata, dict):
        return ""
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        value = metadata.get(section)
        if isinstance(value, dict) and isinstance(value.get(key), str):
            return str(value[key]).strip().lower()[:40]
    return ""


def _reason(error: BaseException) -> str:
    return str(error).encode("ascii", "backslashreplace").decode()[:120]


def _too_many_magics() -> NoReturn:
    _reject(
        "too_many_magics",
        f"A cell has more than {_MAX_MAGICS} magics or shell lines, or {_MAX_WRAPPERS} magics around it. "
        "Write what they do in Python.",
    )


def _reject(reason: str, feedback: str) -> NoReturn:
    raise SubmissionRejected(f"notebook.{reason}", feedback)
