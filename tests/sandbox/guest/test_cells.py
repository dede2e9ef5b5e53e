"""A notebook's cells run one after another in one namespace, and errors name the cell."""

import pytest

from grader_service.model.discovery import LearnerException

pytestmark = pytest.mark.integration


def test_cells_run_in_order_in_one_namespace(notebook):
    """Later cells see earlier ones, `__name__` is `__main__`, and there is no `__file__`, as in a notebook."""
    run = notebook(
        "x = [1]\ndef f(): return x",
        "# nothing but a comment",
        "x.append(2)",
        "y = f() + [__name__, '__file__' in globals()]",
        names="y",
    )
    assert run["y"] == [1, 2, "__main__", False]


def test_an_exception_in_a_cell_names_the_cell(notebook):
    """The place counts lines inside the cell, and the notebook's own cell number is kept."""
    cells = ("def f(n):\n    return 1 / n\n", "x = 1\n\nf(0)\n", "y = 2")
    run = notebook(*cells, ran="raised", numbers=[2, 1234, 1235], names="x y")
    exception = LearnerException.model_validate(run["exception"])
    assert [(frame.file, frame.cell, frame.line) for frame in exception.frames] == [
        ("lab.ipynb", 1234, 3),
        ("lab.ipynb", 2, 2),
    ]
    assert exception.place.source == "return 1 / n"
    assert (run["x"], run["y"]) == (1, None)


def test_a_syntax_error_in_a_cell_names_the_cell(notebook):
    """Earlier cells have run by then, as in a notebook."""
    run = notebook("x = 1", "y = = 2", ran="raised", names="x")
    assert run["x"] == 1
    assert (run["exception"]["place"]["cell"], run["exception"]["place"]["line"]) == (2, 1)


def test_cells_may_await(notebook):
    """Top-level await works, and a task that one cell starts is awaited in another."""
    run = notebook(
        "import asyncio\nasync def slow(n):\n    await asyncio.sleep(0.01)\n    return n\nx = await slow(1)",
        "task = asyncio.ensure_future(slow(2), loop=asyncio.get_event_loop())",
        "x += await task\nasync with asyncio.timeout(5):\n    x += await slow(3)",
        names="x",
    )
    assert run["x"] == 6


def test_awaiting_ends_in_time(notebook):
    """A cell that waits for ever on its loop is stopped at its line."""
    waiting = "async def f():\n    await asyncio.sleep(60)\nawait f()"
    notebook("import asyncio", waiting, ran="timed_out", timeout_s=1.0)


def test_functions_of_cells_have_their_source(notebook):
    """DALI's autograph and inspect read a cell's functions back."""
    run = notebook("import inspect\ndef f():\n    return 'from a cell'", "text = inspect.getsource(f)", names="text")
    assert run["text"] == "def f():\n    return 'from a cell'\n"


def test_conditional_pipelines_in_cells_are_understood(notebook, lab, jpegs):
    """A pipeline with an `if` of its own, defined in a cell, is rewritten by DALI's autograph."""
    run = notebook(
        "from nvidia.dali import fn, pipeline_def, types",
        f"""
        @pipeline_def(enable_conditionals=True, batch_size=4, num_threads=1, device_id=None)
        def pipe():
            jpegs, labels = fn.readers.file(file_root={str(jpegs)!r})
            images = fn.resize(fn.decoders.image(jpegs), size=(16, 16))
            if fn.random.coin_flip(dtype=types.BOOL):
                images = fn.flip(images)
            return images, labels
        """,
        "p = pipe(); shape = list(p.run()[0].as_tensor().shape())",
        names="shape",
    )
    assert run["shape"] == [4, 16, 16, 3]
