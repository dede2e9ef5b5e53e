"""Processes that our programs in a pod start for themselves."""

import ctypes
import os
import signal
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

_PR_SET_PDEATHSIG = 1


def end_with_parent(*_: object) -> None:
    """Has the kernel kill this process when its parent ends: one that is stopped cannot look after it itself."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def without_gpu() -> Executor:
    """Calls functions in a process that sees no GPU, where DALI builds a pipeline for the CPU a hundred times faster.

    Fork it before CUDA is initialised: a child cannot use it after that, and may hang.
    """
    pool = ProcessPoolExecutor(1, mp_context=get_context("fork"), initializer=_begin)
    pool.submit(os.getpid).result()
    return pool


def _begin() -> None:
    end_with_parent()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
