"""Guest code is tested in forked children of the test process: it patches libraries and sets timers."""

import importlib
import importlib.util
import json
import os
import random
import signal
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from grader_service.run.pod_set import AHEAD
from tests.conftest import missing
from tests.sandbox.guest.runs import run_notebook


class ChildFailed(AssertionError):
    """The forked child raised, died or took too long; the message holds its traceback."""


def forked(function: Callable[..., Any], *args: Any, timeout: float = 240.0) -> Any:
    """Runs `function(*args)` in a forked child with its own process group; returns its result: JSON, and bytes in it.

    The child's own children may hold the pipe open, so the end of the answer ends the wait as well.
    """
    reader, writer = Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy's threads make Python 3.12 warn about any fork
        child = os.fork()
    if child == 0:
        reader.close()
        _answer(writer, function, args)
    writer.close()
    os.setpgid(child, child)  # whoever of the two comes first
    with reader:
        try:
            data = reader.recv_bytes() if reader.poll(timeout) else None
        except EOFError:
            data = b""
        finally:
            os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
    if data is None:
        raise ChildFailed(f"the child was killed after {timeout:.0f} s")
    if not data:
        raise ChildFailed(f"the child ended without an answer ({os.waitstatus_to_exitcode(status)})")
    answer = json.loads(data, object_hook=lambda found: bytes.fromhex(found["hex"]) if [*found] == ["hex"] else found)
    if "error" in answer:
        raise ChildFailed(answer["error"])
    return answer["value"]


def _answer(writer: Connection, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """The child's whole life: never returns into the test process's frames."""
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        if "torch" in sys.modules:
            # OpenMP's threads do not live on in a fork; a parallel region would wait for them for ever.
            sys.modules["torch"].set_num_threads(1)
        try:
            text = json.dumps({"value": function(*args)}, default=lambda data: {"hex": bytes.hex(data)})
        except BaseException:  # noqa: BLE001
            text = json.dumps({"error": traceback.format_exc()})
        writer.send_bytes(text.encode())
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)


@pytest.fixture(scope="session")
def lab() -> None:
    """Imports torch, torchvision and DALI once, without running any of it, so that children can fork with them."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "torchvision", "nvidia", "nvidia.dali")):
        missing("torch, torchvision or DALI is not installed (the `lab` extra)")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in AHEAD:
            importlib.import_module(name)


@pytest.fixture(scope="session")
def lab_child(lab: None) -> Callable[..., Any]:
    """`forked`, whose children have torch, torchvision and DALI imported."""
    return forked


@pytest.fixture
def notebook(tmp_path: Path) -> Callable[..., Any]:
    """Runs a notebook's cells in a child, `before` ahead of them; fails where the run did not end as it should."""

    def run(*cells: str, ran: str = "completed", before: Callable[[], None] | None = None, **options: Any) -> Any:
        def in_order() -> Any:
            if before:
                before()
            return run_notebook(tmp_path, *map(textwrap.dedent, cells), **options)

        result = forked(in_order)
        assert result["ran"] == ran, result["exception"]
        return result

    return run


@pytest.fixture(scope="session")
def jpegs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two classes with twelve textured JPEGs each, of different sizes, and `list.txt` that names them."""
    root = tmp_path_factory.mktemp("jpegs")
    names = []
    for number in range(24):
        path = root / f"class_{number % 2}" / f"{number:02d}.jpg"
        path.parent.mkdir(exist_ok=True)
        small = Image.frombytes("RGB", (8, 6), random.Random(number).randbytes(8 * 6 * 3))
        small.resize((50 + number, 40 + number), Image.Resampling.BILINEAR).save(path, "JPEG", quality=85)
        names.append(f"{path} {number}")
    (root / "list.txt").write_text("\n".join(names))
    return root


@pytest.fixture(scope="session")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Six flat-coloured JPEGs of one size, as the host hands them to a clean room."""
    root = tmp_path_factory.mktemp("held-out")
    for number in range(6):
        Image.new("RGB", (64, 48), (40 * number, 100, 250 - 40 * number)).save(root / f"{number}.jpg", quality=95)
    return sorted(str(path) for path in root.iterdir())


@pytest.fixture(scope="session")
def graphs(lab: None, jpegs: Path) -> dict[str, bytes]:
    """Real serialized graphs of every kind; see `pipelines.corpus`."""

    def serialize() -> dict[str, bytes]:
        from tests.sandbox.guest import pipelines

        return pipelines.corpus(jpegs)

    return forked(serialize)
