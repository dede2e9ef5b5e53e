"""Which cells of a notebook run, in which order, and as which Python."""

import ast
import contextlib
import json

import nbformat
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grader_service.errors import SubmissionRejected
from grader_service.ingest.limits import IngestLimits
from grader_service.ingest.notebook import read_cells, to_python
from tests.ingest.packing import code_cell, notebook, refusal

LIMITS = IngestLimits()


def rejection(content, limits=LIMITS):
    return refusal(read_cells, content, limits)


def test_code_cells_run_in_their_order():
    """The order on the page, not that of the execution counts; others are not counted."""
    cells = [code_cell("first"), code_cell("second"), code_cell("third")]
    for cell, count in zip(cells, (9, None, 1), strict=True):
        cell["execution_count"] = count
    cells.insert(1, {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "a = 1"})
    cells.insert(0, {"cell_type": "raw", "id": "r", "metadata": {}, "source": "raw = 1"})
    assert read_cells(notebook(*cells), LIMITS) == [(1, "first"), (2, "second"), (3, "third")]


WITHOUT_ID = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": "x = 1"}


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["", "a = 1", " \n\t\n", "b = 2"], [(2, "a = 1"), (4, "b = 2")]),
        ([code_cell(["a = 1\n", "b = 2"])], [(1, "a = 1\nb = 2")]),
        ([WITHOUT_ID, code_cell("b = 2", 1), code_cell("c = 3", 1)], [(1, "x = 1"), (2, "b = 2"), (3, "c = 3")]),
    ],
    ids=["empty", "list of lines", "missing and doubled ids"],
)
def test_cells_of_many_kinds_are_read(cells, read):
    """Empty ones are counted and left out; Jupyter writes lists of lines; tools that edit forget ids or copy them."""
    assert read_cells(notebook(*cells), LIMITS) == read


def changed(**fields):
    """A code cell with other or more fields."""
    return code_cell("x = 1") | fields


PASTED = {
    "cell_type": "markdown",
    "id": "m",
    "metadata": {},
    "source": "",
    "attachments": {"a.png": {"image/png": 5}},
}
OF_COLAB = changed(
    colab={"base_uri": "https://colab"},
    vscode={"languageId": "python"},
    metadata={"tags": ["parameters"], "trusted": True, "colab": {}},
)
HTML = {"output_type": "execute_result", "data": {"text/html": "<script>alert(1)</script>"}, "metadata": {}}
IGNORED = {
    "a claim in an output": notebook(
        changed(outputs=[{"output_type": "stream", "name": "stdout", "text": "dali_throughput = 99999"}])
    ),
    "markup in an output": notebook(changed(outputs=[HTML])),
    "malformed outputs": notebook(changed(outputs=[{"output_type": "invented"}, 5, None, {"text": {"deep": [1]}}])),
    "outputs that are no list": notebook(changed(outputs={"not": "a list"})),
    "an image pasted into markdown": notebook(PASTED, "x = 1"),
    "fields of Colab and VS Code": notebook(
        OF_COLAB, nbformat_minor=0, metadata={"accelerator": "GPU", "colab": {"provenance": []}}
    ),
    "no metadata": notebook("x = 1", metadata={}),
    "no kernel": notebook("x = 1", metadata={"language_info": {"name": "python", "version": "3.12"}}),
    "a kernel of one's own": notebook(
        "x = 1", metadata={"kernelspec": {"name": "my-env", "language": "Python", "display_name": "mine"}}
    ),
    "a kernel without a language": notebook(
        "x = 1", metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    ),
    "ipython": notebook("x = 1", metadata={"language_info": {"name": "ipython"}}),
    "malformed metadata": notebook("x = 1", metadata={"language_info": "python", "kernelspec": None}),
}


@pytest.mark.parametrize("content", IGNORED.values(), ids=IGNORED)
def test_all_but_the_code_is_ignored(content):
    """Outputs whatever they claim and however malformed, fields of other tools, and any kernel of Python."""
    assert read_cells(content, LIMITS) == [(1, "x = 1")]


def test_huge_outputs_are_honest():
    """Figures make notebooks large; only the code's size matters."""
    figure = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * (20 << 20)}}
    assert read_cells(notebook(code_cell("x = 1", outputs=[figure])), LIMITS) == [(1, "x = 1")]


@pytest.mark.parametrize("minor", [0, 2, 4, 5, 99])
def test_every_minor_version(minor):
    """With and without the cell ids that came with 4.5, and of versions still to come."""
    cell = WITHOUT_ID if minor < 5 else code_cell("x = 1")
    assert read_cells(notebook(cell, nbformat_minor=minor), LIMITS) == [(1, "x = 1")]


def test_a_notebook_of_format_3():
    """The format of 2014 is upgraded by nbformat itself."""
    old = nbformat.v3.new_notebook(
        worksheets=[
            nbformat.v3.new_worksheet(
                cells=[
                    nbformat.v3.new_code_cell(input="x = 1", outputs=[]),
                    nbformat.v3.new_text_cell("markdown", source="text"),
                    nbformat.v3.new_code_cell(input="%time y = 2"),
                ]
            )
        ]
    )
    assert read_cells(json.dumps(old).encode(), LIMITS) == [
        (1, "x = 1"),
        (2, "get_ipython().run_line_magic('time', 'y = 2')\n"),
    ]


@pytest.mark.parametrize(
    "metadata",
    [
        {"language_info": {"name": "R"}},
        {"kernelspec": {"name": "ir", "language": "R", "display_name": "R"}},
        {"language_info": {"name": "julia"}, "kernelspec": {"language": "python", "name": "x", "display_name": "x"}},
        {"language_info": {"name": "python\u202e\x1b[31m"}},
        {"language_info": {"name": "x" * 10_000}},
    ],
)
def test_other_kernels(metadata):
    """The message says which language came and which is expected."""
    code, feedback = rejection(notebook("x <- 1", metadata=metadata))
    assert code == "notebook.not_python"
    assert "expected Python" in feedback
    assert len(feedback) < 300


@pytest.mark.parametrize("content", [b"", b"{", b"not json", b"\xff\xff", b"\x89PNG\r\n", b'{"a": 1}{', b"[" * 100_000])
def test_what_is_not_json(content):
    """Text, images, half a file and a million brackets."""
    code, feedback = rejection(content)
    assert code == "notebook.unreadable"
    assert "Save it" in feedback
    assert "resend it" in feedback


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"5",
        b"null",
        b'"nbformat"',
        b"{}",
        b'{"nbformat": 4}',
        b'{"nbformat": 99, "nbformat_minor": 0, "cells": []}',
        b'{"nbformat": "4", "nbformat_minor": "x", "cells": []}',
        b'{"nbformat": 3, "worksheets": 7}',
        b'{"nbformat": 3, "worksheets": [7]}',
        b'{"nbformat": 2}',
        notebook(cells=None),
        notebook(cells="abc"),
        notebook(cells={"a": 1}),
        notebook(cells=[1, 2]),
        notebook(cells=[[]]),
        notebook(cells=[{}]),
        notebook(code_cell(5)),
        notebook(code_cell(None)),
        notebook(code_cell([1, 2])),
        notebook(code_cell({"a": "b"})),
    ],
)
def test_what_is_json_and_no_notebook(content):
    """Every malformed notebook is a rejection with words for the learner, never our failure."""
    code, feedback = rejection(content)
    assert code in ("notebook.unreadable", "notebook.no_code")
    assert "resend it" in feedback


@settings(deadline=None, max_examples=150)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["cell_type", "source", "cells", "metadata", "worksheets", "input", "outputs", "language"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from([1, 2, 3, 4, 5]),
)
def test_any_json_is_read_or_rejected(value, version):
    """Values of every type in every place."""
    whole = {"nbformat": version, "nbformat_minor": 0, "metadata": {}, "cells": value}
    whole |= value if isinstance(value, dict) else {"worksheets": [{"cells": value}]}
    with contextlib.suppress(SubmissionRejected):
        cells = read_cells(json.dumps(whole).encode(), LIMITS)
        assert all(isinstance(source, str) and source for _, source in cells)


@pytest.mark.parametrize("cells", [[], [""], ["  \n"], [{"cell_type": "markdown", "metadata": {}, "source": "x = 1"}]])
def test_a_notebook_without_code(cells):
    """There is nothing to run."""
    assert rejection(notebook(*cells))[0] == "notebook.no_code"


def test_too_many_cells():
    """The limit itself is allowed; one more is not."""
    assert len(read_cells(notebook(*["x = 1"] * 5), IngestLimits(cells=5))) == 5
    code, feedback = rejection(notebook(*["x = 1"] * 6), IngestLimits(cells=5))
    assert code == "notebook.too_many_cells"
    assert "has 6 code cells; at most 5" in feedback


@pytest.mark.parametrize(
    "filler", ["x", "é", "🚀", "\x01", "%m\n"], ids=["letters", "accents", "emoji", "control", "magics"]
)
def test_too_much_code(filler):
    """Counted as it travels to the pod: escapes and written-out magics take their real room."""
    cells = ["#" + filler * 40_000] if filler != "%m\n" else [filler * 399] * 20
    content = notebook(*cells)
    code, feedback = rejection(content, IngestLimits(source_bytes=1 << 14))
    assert code == "notebook.too_large"
    assert "Move data out of the code" in feedback


def test_the_largest_code_fits_into_one_request():
    """A notebook just below the limit is not refused later by the pod, whose requests have at most 8 MiB."""
    cells = read_cells(notebook("s = '" + "é" * 1_000_000 + "'"), LIMITS)
    assert len(json.dumps(cells)) < 8 << 20


PLAIN = [
    "x = 1",
    "x = 1\n",
    "\n\nx = 1\n",
    "x = 1  # why? because",
    's = "%time"\nt = """\n!ls\n%magic\n"""\n',
    "a = 7\nb = (a\n% 3)\n",
    "await thing()\nasync for x in y:\n    pass",
    "x = 1\r\ny = 2\r\n",
    "def f():\n\tif True:\n\t\treturn 5 % 3\n",
    "s = 'a\x0cb'\n\x0cx = 1\n",
    "print(f'{x!r}')\nassert x != y\n",
    "é = 'ü'\n",
    "if x:\n    pass\n\n\n\n# end?",
    "s = '\\d'",
]


NO_PYTHON = ["# Title\nsome words here", "x = ", "SELECT * FROM t;", "<b>html</b>", "x = (1", "1 +* 2\n\n"]


@pytest.mark.parametrize("source", [*PLAIN, *NO_PYTHON])
def test_cells_without_magics_are_left_alone(source):
    """Byte for byte, blank lines, question marks and percent signs included; what is no Python fails at its line."""
    assert to_python(source) == source


CALLS = [
    ("!ls -l", "get_ipython().system('ls -l')\n"),
    ("%matplotlib inline\nx = 1", "get_ipython().run_line_magic('matplotlib', 'inline')\nx = 1\n"),
    ("files = !ls", "files = get_ipython().getoutput('ls')\n"),
    ("t = %timeit -o f()", "t = get_ipython().run_line_magic('timeit', '-o f()')\n"),
    ("%%bash\necho 1\n", "get_ipython().run_cell_magic('bash', '', 'echo 1\\n')\n"),
    ("%%writefile a.py\nx = 1\n", "get_ipython().run_cell_magic('writefile', 'a.py', 'x = 1\\n')\n"),
    ("if x:\n    !ls {y}\n", "if x:\n    get_ipython().system('ls {y}')\n"),
    ("print?", "get_ipython().run_line_magic('pinfo', 'print')\n"),
    (">>> x = 1\n>>> y = 2", "x = 1\ny = 2\n"),
    ("    x = 1\n    y = 2", "x = 1\ny = 2\n"),
    ("pip install nvidia-dali", "get_ipython().run_line_magic('pip', 'install nvidia-dali')\n"),
    ("cd data", "get_ipython().run_line_magic('cd', 'data')\n"),
    ("mkdir -p data/a", "get_ipython().system('mkdir -p data/a')\n"),
]


@pytest.mark.parametrize(("source", "python"), CALLS)
def test_magics_become_calls(source, python):
    """As IPython's own transformer writes them; a cell that is one bare command is run as Jupyter runs it."""
    assert to_python(source) == python
    ast.parse(python)


@pytest.mark.parametrize("magic", ["%%time", "%%timeit -n 3 -r 1", "%%capture out", "%%prun -q", "%%python3"])
def test_magics_around_a_cell_keep_its_line_numbers(magic):
    """The cell runs as it stands, its first line a comment: an error in line 3 is in line 3."""
    source = f"{magic}\nx = 1\nraise ValueError\n"
    assert to_python(source) == f"# {source}"


def test_magics_around_a_cell_with_magics_inside():
    """Both kinds, with blank lines before; every line keeps its number."""
    assert to_python("\n\n%%time\n%%capture\nx = 1\n\n!ls\ny = 2\n").split("\n") == [
        "",
        "",
        "# %%time",
        "# %%capture",
        "x = 1",
        "",
        "get_ipython().system('ls')",
        "y = 2",
        "",
    ]


def test_the_setup_of_a_timed_cell_runs():
    """`%%timeit statement` runs the statement before the cell."""
    assert to_python("%%timeit -n 2 -r1 data = [1]\nsum(data)\n") == "data = [1]\nsum(data)\n"
    assert to_python("%%timeit -q\nx = 1\n") == "# %%timeit -q\nx = 1\n"


def test_a_mistake_beside_a_magic_keeps_its_line():
    """The magic is a call, the mistake is where it was."""
    assert to_python("!ls\nx = = 1\n").split("\n")[1] == "x = = 1"


@pytest.mark.slow
def test_too_many_magics():
    """400 lines are more than a person writes; 400 are still taken."""
    assert to_python("%a\n" * 400).count("get_ipython()") == 400
    for source in ("%a\n" * 401, "!a\nx = 1\n" * 401, "%%time\n" * 10 + "x = 1", "%%time\n" * 20_000):
        code, feedback = refusal(to_python, source)
        assert code == "notebook.too_many_magics"
        assert "Write what they do in Python" in feedback


ODD_LINES = [
    "%%time", "%%bash", "%x", "!y", "z?", "a = %b", "c = !d", "", "    ", '"""', "'", "(", "x = 1", "if x:", ">>> a",
    "\\", "%", "%%", "!", "?", "\ud800", "In [1]: x", "pip install x", "\x00", "/f 1", ",f a", "\r", "\x0c", "\u2028",
]  # fmt: skip
ODD_SIGNS = "%!?=\n \t\\'\"#xa1()[]{}>.,;/:@\r\x0c\u2028\x00"
ODD_TEXT = st.text() | st.text(st.sampled_from(ODD_SIGNS)) | st.lists(st.sampled_from(ODD_LINES)).map("\n".join)
STATEMENTS = [*PLAIN, "import os", "for i in range(3):\n    print(i % 2)", "x: int = 5 if y else 6  # ok?"]
COMMENTS = st.text(st.characters(exclude_characters="\r\n\x00", codec="utf-8")).map("# {}".format)
PYTHON = st.lists(st.sampled_from(STATEMENTS) | COMMENTS, max_size=7).map("\n".join)


@settings(deadline=None, max_examples=500)
@given(ODD_TEXT | PYTHON)
@example("%%")
@example("!")
@example("x = \ud800?")
@example("(" * 300 + "?")
@example("-" * 5000 + "1")
@example("\x00")
@example("%%time\r\nx")
def test_any_text_is_answered(source):
    """Text of any kind becomes text, or one rejection; plain Python of many lines is returned as it is."""
    try:
        ast.parse(source)
        is_python = True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        is_python = False
    try:
        python = to_python(source)
    except SubmissionRejected:
        assert not is_python
        return
    assert isinstance(python, str)
    assert python == source or not is_python
