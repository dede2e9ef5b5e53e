"""Processes that our programs in a pod start for themselves."""

import ctypes
import os
import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

_PR_SET_PDEATHSIG = 1


def end_with_parent(*_: object) -> None:
    """Has the kernel kill this process when its parent ends: one that is stopped cannot look after it itself."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class WithoutGpu:
    """A process that sees no GPU, where DALI builds a pipeline for the CPU a hundred times faster.

    Fork it before CUDA is initialised: a child cannot use it after that, and may hang.

    Args:
        ahead: what the process does at once, so that no later call waits for it.
    """

    def __init__(self, ahead: Callable[[], object] | None = None) -> None:
        context = get_context("fork")
        self._link, theirs = context.Pipe()
        context.Process(target=_serve, args=(theirs, ahead), daemon=True).start()
        theirs.close()  # or the end of the process would not be seen

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """What a function returns there, which gets one that calls a function here as its first argument.

        One call at a time, from any thread: it is there that the function is called which runs here.

        Both ways a failure is a RuntimeError with the text of what was raised.

        Raises:
            RuntimeError: the function raised.
            EOFError: the process ended.
        """
        self._link.send((function, arguments))
        while True:
            kind, what = self._link.recv()
            if kind != "call":
                return _result(kind, what)
            self._link.send(_done(*what))


def _serve(link: Connection, ahead: Callable[[], object] | None) -> None:
    end_with_parent()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if ahead is not None:
        ahead()

    def in_parent(function: Callable[..., Any], *arguments: object) -> Any:
        link.send(("call", (function, arguments)))
        return _result(*link.recv())

    while True:
        function, arguments = link.recv()
        link.send(_done(function, (in_parent, *arguments)))


def _done(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "returned", function(*arguments)
    except Exception as error:
        return "raised", str(error)


def _result(kind: str, what: Any) -> Any:
    if kind == "raised":
        raise RuntimeError(what)
    return what
