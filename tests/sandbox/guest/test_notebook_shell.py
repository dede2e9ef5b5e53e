"""Every magic of `notebook_shell`'s docstring, in notebooks that went through the real transformer."""

import os

import pytest

INSTALL_NOTE = "installing packages is not possible; the lab image's packages are used"


def test_shell_lines_run_in_the_shell(notebook, tmp_path):
    """`!cmd` writes files and prints, pipes work, and a failing command does not stop the notebook."""
    run = notebook("!echo hello > greeting.txt\n!false\nstatus = _exit_code\n!no-such-command-xyz", names="status")
    assert (tmp_path / "greeting.txt").read_text() == "hello\n"
    assert run["status"] == 1


def test_variables_are_filled_into_shell_lines(notebook, tmp_path):
    """`{expression}` and `$name` are the notebook's values; what is not Python's is the shell's."""
    run = notebook(
        "folder = 'data set'\nn = 3",
        '!mkdir -p "{folder}/{n + 1}"',
        '!mkdir -p "$folder/$n"',
        "a = !echo $HOME ${PATH:+set}\nb = !printf '1 2\\n' | awk '{print $2}'\nc = !echo '{{x}}' {n:03d}",
        "def f(local):\n    out = !echo {local} $local\n    return out[0]\nd = f('inside')",
        names="a b c d",
    )
    assert (tmp_path / "data set" / "4").is_dir()
    assert (tmp_path / "data set" / "3").is_dir()
    assert run["a"][0].endswith(" set")
    assert run["b"] == ["2"]
    assert run["c"] == ["{x} 003"]
    assert run["d"] == "inside inside"


def test_the_output_of_a_command_is_a_list_of_lines(notebook):
    """`x = !cmd`, `%sx` and `!!cmd` give lines that know the whole text, whatever bytes they hold."""
    run = notebook(
        "lines = !printf 'a\\nb\\n'\nwhole, spaced, count = lines.n, lines.s, len(lines)",
        "again = %sx printf 'c\\nd'\nodd = !printf '\\377'",
        names="lines whole spaced count again odd",
    )
    assert run["lines"] == ["a", "b"]
    assert (run["whole"], run["spaced"], run["count"]) == ("a\nb", "a b", 2)
    assert run["again"] == ["c", "d"]
    assert run["odd"] == ["\ufffd"]


@pytest.mark.parametrize("magic", ["%%bash", "%%sh", "%%script bash"])
def test_shell_cells_run_as_one_script(notebook, tmp_path, magic):
    """The body of a shell cell is one script; its failure does not stop the notebook."""
    notebook(f"{magic}\nX=5\nfor i in 1 2; do\n  echo $X$i >> out.txt\ndone\nexit 3\n", "y = 1")
    assert (tmp_path / "out.txt").read_text() == "51\n52\n"


def test_shell_cells_take_arguments(notebook, tmp_path):
    """`%%bash -s` hands Python's values to the script, and bash's own syntax works."""
    notebook('folder = "my data"', '%%bash -s "{folder}" 7\n[[ $2 == 7 ]] && mkdir -p "$1"')
    assert (tmp_path / "my data").is_dir()


def test_file_commands_are_magics_too(notebook, tmp_path):
    """`%mkdir`, `%cp`, `%ls` and their like do what the commands do."""
    notebook("%mkdir -p a/b", "!touch a/x", "%cp a/x a/y\n%mv a/x a/z\n%ls a\n%cat a/y", "%rm a/z")
    assert sorted(os.listdir(tmp_path / "a")) == ["b", "y"]


def test_statements_behind_time_are_run_once(notebook):
    """`%time`, `%timeit`, `%prun` and their options run the statement once, with its spaces as they are."""
    run = notebook(
        "calls = []",
        "%time calls.append('a  b')",
        "%timeit -n 10 -r3 calls.append('c')",
        "%timeit -n10 -r 3 -q calls.append('d')",
        "%prun -s cumulative -l 10 calls.append('e')",
        "%time x = len(calls)",
        "y = %time len(calls)",
        "%memit -r 1 calls.append('f')",
        names="calls x y",
    )
    assert run["calls"] == ["a  b", "c", "d", "e", "f"]
    assert (run["x"], run["y"]) == (4, 4)


def test_timeit_gives_its_time(notebook):
    """`-o` returns an object with the time of a run."""
    run = notebook(
        "import time\nr = %timeit -o -n1 -r1 time.sleep(0.05)\nnumbers = [r.average, r.best, min(r.timings)]",
        names="numbers",
    )
    assert all(0.04 < number < 2.0 for number in run["numbers"])


@pytest.mark.parametrize(
    "magic", ["%%time", "%%timeit -n 1", "%%capture", "%%capture out", "%%prun", "%%python3", "%%memit"]
)
def test_cells_behind_a_wrapping_magic_run_once(notebook, magic):
    """The body defines its names, and magics in it work."""
    run = notebook("n = 0", f"{magic}\nn += 1\nm = n + 1\n", names="n m")
    assert (run["n"], run["m"]) == (1, 2)


def test_an_error_in_a_wrapped_cell_is_the_learners(notebook):
    """The place of an exception below `%%time` is the line of the cell."""
    run = notebook("%%time\nx = 1\ny = 1 / 0\n", ran="raised")
    assert (run["exception"]["type"], run["exception"]["place"]["line"]) == ("ZeroDivisionError", 3)


def test_changing_folders(notebook, tmp_path):
    """`%cd` takes quotes, `-q`, variables, `-` and `~`; `%pwd` says where one is."""
    (tmp_path / "my data" / "deep").mkdir(parents=True)
    run = notebook(
        'import os\nseen = []\nname = "deep"',
        '%cd "my data"\nhere = %pwd\nseen.append(here)',
        "%cd -q {name}\nseen.append(os.getcwd())",
        "%cd -\nseen.append(os.getcwd())",
        "%cd ..\nseen.append(os.getcwd())",
        "os.environ['HOME'] = os.getcwd()\n%cd ~/my\\ data\nseen.append(os.getcwd())\n%cd\nseen.append(os.getcwd())",
        names="seen",
    )
    data = tmp_path / "my data"
    assert run["seen"] == [str(path) for path in (data, data / "deep", data, tmp_path, data, tmp_path)]


def test_environment_variables(notebook):
    """`%env` and `%set_env` set with `=` or a space, read one, and list all."""
    run = notebook(
        "%env GUEST_A=1\n%env GUEST_B = two words\n%set_env GUEST_C 3\nvalue = 7\n%env GUEST_D={value}",
        "import os\na = [os.environ['GUEST_' + letter] for letter in 'ABCD']\nb = %env GUEST_A",
        "c = %env\nc = c['GUEST_C']",
        names="a b c",
    )
    assert run["a"] == ["1", "two words", "3", "7"]
    assert (run["b"], run["c"]) == ("1", "3")


def test_running_another_file(notebook, tmp_path):
    """`%run` runs a script as main with its arguments; its names arrive, the notebook's own `__name__` stays."""
    (tmp_path / "prepare.py").write_text(
        "import sys\nargs = sys.argv\ndef double(x):\n    return 2 * x\nif __name__ == '__main__':\n    main = True\n"
    )
    (tmp_path / "inner.py").write_text("seen = outer + 1\n")
    run = notebook(
        "outer = 1",
        "%run prepare.py --size 3\nr = double(4)",
        "%run -i inner\nname, file = __name__, '__file__' in globals()\nimport sys\nargv = sys.argv",
        names="args main r seen name file argv",
    )
    assert run["args"] == ["prepare.py", "--size", "3"]
    assert (run["main"], run["r"], run["seen"], run["name"], run["file"]) == (True, 8, 2, "__main__", False)
    assert run["argv"] == ["ipykernel_launcher.py"]


def test_an_error_in_a_run_file_has_its_line(notebook, tmp_path):
    """The place is the line of the script."""
    (tmp_path / "broken.py").write_text("x = 1\nraise ValueError(x)\n")
    run = notebook("%run broken.py", ran="raised")
    assert (run["exception"]["place"]["file"], run["exception"]["place"]["line"]) == ("broken.py", 2)


def test_writing_files(notebook, tmp_path):
    """`%%writefile` writes, appends with `-a`, and takes names with variables; the module can then be imported."""
    run = notebook(
        "name = 'helper'",
        "%%writefile {name}.py\nVALUE = 'ä'\n",
        "%%writefile -a helper.py\nOTHER = 2\n",
        '%%file "two words.txt"\ntext\n',
        "import helper\nseen = [helper.VALUE, helper.OTHER]",
        names="seen",
    )
    assert run["seen"] == ["ä", 2]
    assert (tmp_path / "two words.txt").read_text() == "text\n"


@pytest.mark.parametrize(
    "line",
    [
        "%pip install nvidia-dali-cuda120",
        "%conda install -y pillow",
        "!pip install -q no-such-package-zz",
        "!pip3 install no-such-package-zz",
        "!python3 -m pip install no-such-package-zz",
        "%%bash\npip install no-such-package-zz",
    ],
)
def test_nothing_is_installed_and_the_run_goes_on(notebook, line):
    """Installing is noted and skipped in no time, whatever form it has."""
    run = notebook(line, "x = 1", names="x")
    assert run["x"] == 1
    assert len(run["notes"]) == 1
    assert "packages are used" in run["notes"][0]
    assert run["duration_s"] < 10


def test_what_stands_beside_an_installation_is_run(notebook, tmp_path):
    """Only the installation of a line or cell is skipped."""
    run = notebook(
        "!pip install -q no-such-package-zz && mkdir one",
        "%%bash\nmkdir two\npip install no-such-package-zz\nmkdir three",
        "%%capture\n!pip install no-such-package-zz\n!mkdir four",
    )
    assert {"one", "two", "three", "four"} <= set(os.listdir(tmp_path))
    assert run["notes"] == [INSTALL_NOTE]


def test_everything_else_is_ignored_and_noted(notebook):
    """Unknown magics do not stop a run, and each is noted once, at most 32 in all."""
    run = notebook(
        "%matplotlib inline\n%load_ext autoreload\n%autoreload 2\n%matplotlib inline\n%config InlineBackend.x = 1",
        "%%html\n<b>bold</b>",
        "get_ipython().magic('matplotlib inline')\nget_ipython().set_next_input('x')",
        "x = get_ipython().user_ns['y'] = 1",
        *[f"%unknown_{number}" for number in range(40)],
        names="x y",
    )
    assert run["notes"][:3] == ["%matplotlib ignored", "%load_ext ignored", "%autoreload ignored"]
    assert "%%html ignored with its cell" in run["notes"]
    assert len(run["notes"]) == len(set(run["notes"])) == 32
    assert (run["x"], run["y"]) == (1, 1)


def test_what_a_notebook_has_by_itself(notebook):
    """`display`, `get_ipython`, `In`, `Out`, `exit` are there, and displaying prints."""
    run = notebook(
        "display('shown', 2)\nhandle = display('x', display_id=True)\nhandle.update('y')",
        "ready = [callable(get_ipython), type(In) is list, type(Out) is dict, hasattr(get_ipython(), '__len__')]",
        names="ready",
    )
    assert run["ready"] == [True, True, True, False]
    assert "shown\n2\n" in run["printed"]


def test_leaving_a_notebook(notebook):
    """`exit()` ends the run without an error."""
    run = notebook("x = 1\nexit()", "x = 2", ran="exited", names="x")
    assert (run["x"], run["exit_code"]) == (1, 0)


def test_ipython_can_be_imported_where_it_is_not_installed(notebook):
    """A stand-in answers `IPython.display` and `get_ipython`, and matplotlib does not stumble over it."""

    def take_away():
        import sys
        from importlib.machinery import PathFinder

        class Without:
            """Finds all that is installed but IPython."""

            @staticmethod
            def find_spec(name, path=None, target=None):
                absent = name.split(".")[0] in ("IPython", "ipykernel")
                return None if absent else PathFinder.find_spec(name, path, target)

        sys.meta_path[sys.meta_path.index(PathFinder)] = Without
        for name in [name for name in sys.modules if name.split(".")[0] == "IPython"]:
            del sys.modules[name]

    run = notebook(
        "from IPython.display import clear_output, display, Image, HTML, Markdown\nimport IPython.display as ipd",
        "from IPython import get_ipython\nfrom IPython.core.magic import register_line_magic",
        "display(Image('x.png')); clear_output(wait=True); ipd.Audio([0]); same = get_ipython() is not None",
        "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()",
        "get_ipython().run_line_magic('matplotlib', 'inline')\nversion = IPython.__version__ if 0 else 'x'",
        before=take_away,
        names="same",
    )
    assert run["same"] is True


def test_notebook_progress_bars_are_plain_ones(notebook):
    """`tqdm.notebook` needs widgets; its names draw text instead."""

    def hook():
        from sandbox.guest.learner import import_hooks, notebook_shell

        import_hooks.after_import({"tqdm.notebook": notebook_shell.plain_progress})

    cell = "from tqdm.notebook import tqdm, trange\nx = sum(tqdm(range(4))) + sum(trange(3))"
    assert notebook(cell, before=hook, names="x")["x"] == 9
