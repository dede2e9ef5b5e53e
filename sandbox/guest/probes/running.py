"""Runs one probe: its source is compiled here, in the pod, and what it returns is bounded before it is sent."""

import contextlib
import io
import json
import linecache
import math
import signal
import time
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any

from ..graph.operators import Row, row_of

MAX_BYTES = 256 << 10
_TEXT = 4000
_DEPTH = 12
_LARGEST = 1 << 63


class ProbeTimeout(BaseException):
    """The probe used up its budget; no `Exception`, so that `except Exception` does not swallow it."""


class GraphProblem(Exception):
    """A learner's graph did not run on the probe's images; the message is for the learner."""


class NoGraph(Exception):
    """There is no graph that could be carried; the message says why."""


class Context:
    """What the argument of every `probe(context)` has; `budget_s` begins now."""

    def __init__(self, device: str, params: Mapping[str, Any], folder: str, budget_s: float) -> None:
        self.device = device
        """`cuda`, or `cpu` in a rehearsal, where every graph runs on DALI's CPU backend."""
        self.params = params
        """Per check that asked for this probe, the lab's parameters."""
        self.folder = folder
        """An empty folder of the probe's own."""
        self._end = time.monotonic() + budget_s

    @property
    def remaining_s(self) -> float:
        """Seconds of the budget that are left, never below 0."""
        return max(0.0, self._end - time.monotonic())

    def operator_row(self, name: str) -> Row:
        """What is known of an operator of a graph, by its schema name."""
        return row_of(name)


def run(name: str, source: bytes, context: Any, budget_s: float) -> dict[str, Any]:
    """The fields of a `probed` message; `observations` where the status is `ok`."""
    printed = _Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        told = _run(name, source, context, budget_s)
    return {**told, "printed": _carried(printed.text)}


def _run(name: str, source: bytes, context: Any, budget_s: float) -> dict[str, Any]:

    def out_of_time(*_: Any) -> None:
        raise ProbeTimeout

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, budget_s, 1.0)
    try:
        found = _call(name, source, context)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except ProbeTimeout:
        return _problem("timed_out", f"it was not done within {budget_s:g} s")
    except NoGraph as problem:
        return _problem("no_graph", str(problem))
    except GraphProblem as problem:
        return _problem("graph_failed", str(problem))
    except BaseException as error:
        return _problem("raised", f"{type(error).__name__}: {_said(error)}", _trace(error, _file(name)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
    return _observations(found)


class _Printed(io.TextIOBase):
    """The last characters of what a probe prints."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text = (self.text + text)[-_TEXT:]
        return len(text)


def _call(name: str, source: bytes, context: Any) -> Any:
    module = types.ModuleType(f"grader_probe_{name}")
    lines = source.decode("utf-8", "replace").splitlines(keepends=True)
    linecache.cache[_file(name)] = (len(source), None, lines, _file(name))  # so that tracebacks have its lines
    exec(compile(source, _file(name), "exec"), module.__dict__)
    probe: Callable[[Any], Any] = module.__dict__["probe"]
    return probe(context)


def _observations(found: Any) -> dict[str, Any]:
    try:
        plain = to_plain(found)
    except ValueError as error:
        return _problem("unreadable", str(error))
    if type(plain) is not dict:
        return _problem("unreadable", f"it returned a {type(found).__name__}; expected a dict")
    size = len(json.dumps(plain, allow_nan=False))
    if size > MAX_BYTES:
        return _problem("unreadable", f"it returned {size} bytes of JSON; at most {MAX_BYTES} are taken")
    return {"status": "ok", "text": "", "traceback": "", "observations": plain}


def to_plain(value: Any, depth: int = _DEPTH) -> Any:
    """A JSON value that any reader takes.

    NaN and infinities become null, numpy and torch scalars numbers, and characters that UTF-8 cannot carry, as in file
    names of other encodings, question marks.

    Raises:
        ValueError: it is nested too deeply, of a type that JSON does not have, or an integer of more than 63 bits.
    """
    if depth == 0:
        raise ValueError(f"it is nested more than {_DEPTH} levels deep")
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return _carried(value)
    if type(value) is int:
        if abs(value) >= _LARGEST:
            raise ValueError("it holds an integer of more than 63 bits")
        return value
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) in (list, tuple):
        return [to_plain(item, depth - 1) for item in value]
    if type(value) is dict:
        return {_carried(str(key)): to_plain(item, depth - 1) for key, item in value.items()}
    if callable(getattr(value, "item", None)) and getattr(value, "shape", None) in ((), (1,)):
        return to_plain(value.item(), depth - 1)
    if callable(getattr(value, "tolist", None)):
        return to_plain(value.tolist(), depth - 1)
    raise ValueError(f"it holds a {type(value).__name__}, which JSON does not have")


def _carried(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _problem(status: str, text: str, trace: str = "") -> dict[str, Any]:
    return {"status": status, "text": _carried(text[:_TEXT]), "traceback": _carried(trace), "observations": None}


def _file(name: str) -> str:
    return f"<probe {name}>"


def _trace(error: BaseException, file: str) -> str:
    """The end of its traceback, for the probe's author: from the probe's own first line on."""
    try:
        place = error.__traceback__
        while place is not None and place.tb_frame.f_code.co_filename != file:
            place = place.tb_next
        return "".join(traceback.format_exception(type(error), error, place))[-_TEXT:]
    except BaseException:
        return ""


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return "(an exception whose text cannot be read)"
