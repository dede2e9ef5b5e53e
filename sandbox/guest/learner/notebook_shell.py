"""The parts of IPython that notebooks lean on, for pods whose image has no IPython.

Cells arrive with magics already turned into `get_ipython()` calls by IPython's own transformer. What a magic does here:

* `!cmd`, `x = !cmd`, `%sx`, `%%bash`, `%%sh`, `%%script`, `%mkdir` and its like: run in the pod's shell (no network),
  with `{name}` and `$name` filled in; output goes to the pod's log; a failure does not stop.
* `%time`, `%%time`, `%timeit`, `%%timeit`, `%prun`, `%%capture`: run the statement or cell once; `-o` gives its time.
* `%cd`, `%env`, `%set_env`, `%pwd`, `%run`, `%%writefile`: do what they do in a notebook.
* `%pip`, `%conda`, `!pip install`: nothing can be installed; noted, and the run goes on with what the image has.
* everything else (`%matplotlib`, `%load_ext`, `%autoreload`, …): ignored and noted.
"""

import builtins
import os
import re
import runpy
import shlex
import shutil
import string
import subprocess
import sys
import time
from typing import Any, NamedTuple

from .ipython_stand_in import Shown, show, use

_ONCE = frozenset({"time", "timeit", "prun", "capture", "memit", "mprun", "lprun"})
_SHELL = frozenset({"bash", "sh", "script"})
_COMMANDS = frozenset({"cat", "cp", "ls", "ll", "mkdir", "mv", "rm", "rmdir"})
_INSTALLERS = ("pip", "pip3", "conda", "mamba", "uv")
_TAKES_VALUE = {"timeit": "nrp", "prun": "lsTD", "memit": "rt", "mprun": "fT", "lprun": "fmTDu"}
_OPTION = re.compile(r"-(-[\w-]+|[A-Za-z])(\S*)\s*")
_DOLLAR = re.compile(r"\$([A-Za-z_]\w*)")
# What installs is skipped and everything else of the same line runs; `python -m pip` finds no index.
_NO_INSTALL = "".join(
    f'{name}() {{ case " $* " in *" install "*) ;; *) command {name} "$@" ;; esac; }}; ' for name in _INSTALLERS
)
_OFFLINE = {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "CONDA_OFFLINE": "1"}


class Timing(NamedTuple):
    """What `%timeit -o` gives, from one run."""

    average: float
    best: float
    worst: float
    stdev: float
    timings: list[float]
    all_runs: list[float]
    loops: int = 1
    repeat: int = 1


class Lines(list[str]):
    """The output of a command: a list of its lines that knows the whole text, as in a notebook."""

    @property
    def n(self) -> str:
        """All of it."""
        return "\n".join(self)

    @property
    def s(self) -> str:
        """On one line."""
        return " ".join(self)


class NotebookShell:
    """What `get_ipython()` returns."""

    def __init__(self, namespace: dict[str, Any], notes: list[str]) -> None:
        self.user_ns = namespace
        self.config: dict[str, Any] = {}
        self.events = Shown()
        self._notes = notes
        self._last_folder = ""

    def install(self) -> None:
        """Makes `get_ipython` and `display` available to the cells, as a notebook does."""
        self.user_ns.setdefault("get_ipython", lambda: self)
        self.user_ns.setdefault("display", show)
        self.user_ns.setdefault("In", [])
        self.user_ns.setdefault("Out", {})
        use(self)
        builtins.exit = builtins.quit = _leave  # type: ignore[assignment]

    def system(self, command: str) -> None:
        """`!command`."""
        self._run_command(self._filled(command, sys._getframe(1).f_locals))

    def getoutput(self, command: str, **_: Any) -> Lines:
        """`x = !command`: its output as lines."""
        return self._output_of(self._filled(command, sys._getframe(1).f_locals))

    def run_line_magic(self, name: str, line: str, *_: Any, **__: Any) -> Any:
        """`%name line`."""
        if name in _ONCE:
            return self._once(_statement(name, line), timed=name == "timeit")
        line = self._filled(line, sys._getframe(1).f_locals)
        if name == "cd":
            self._change_folder(line)
        elif name == "pwd":
            return os.getcwd()
        elif name in ("env", "set_env"):
            return self._environment(line)
        elif name == "run":
            self._run_file(line)
        elif name in ("sx", "system"):
            return self._output_of(line)
        elif name in _COMMANDS:
            self._run_command(f"{'ls -l' if name == 'll' else name} {line}")
        elif name in _INSTALLERS:
            self._note(f"%{name} ignored: nothing can be installed; the lab image's packages are used")
        else:
            self._note(f"%{name} ignored")
        return None

    def magic(self, text: str) -> Any:
        """`get_ipython().magic("name line")`, the old form."""
        name, _, line = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, line)

    def run_cell_magic(self, name: str, line: str, cell: str) -> Any:
        """`%%name line` with the cell's body."""
        if name in _ONCE:
            return self._once(cell)
        line = self._filled(line, sys._getframe(1).f_locals)
        if name in _SHELL:
            words = shlex.split(line)
            arguments = words[words.index("-s") + 1 :] if "-s" in words else []
            self._shell([shutil.which("bash") or "/bin/sh"], cell, arguments)
        elif name in ("writefile", "file"):
            words = shlex.split(line)
            mode = "a" if "-a" in words[:-1] or "--append" in words[:-1] else "w"
            with open(os.path.expanduser(words[-1]), mode, encoding="utf-8") as file:
                file.write(cell)
        elif name in ("python", "python3", "py"):
            return self._once(cell)
        else:
            self._note(f"%%{name} ignored with its cell")
        return None

    def run_cell(self, source: str, *_: Any, **__: Any) -> None:
        """`get_ipython().run_cell(source)`."""
        self._once(source)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: self._note(f"get_ipython().{name} ignored")

    def _once(self, source: str, *, timed: bool = False) -> Any:
        try:
            code = compile(source, "<cell>", "eval")
        except SyntaxError:
            code = compile(source, "<cell>", "exec")
        started = time.perf_counter()
        value = eval(code, self.user_ns)  # noqa: S307 - the learner's own code, in the learner's pod
        seconds = time.perf_counter() - started
        return Timing(seconds, seconds, seconds, 0.0, [seconds], [seconds]) if timed else value

    def _run_command(self, command: str) -> None:
        self.user_ns["_exit_code"] = self._shell(["/bin/sh"], command).returncode

    def _output_of(self, command: str) -> Lines:
        output = self._shell(["/bin/sh"], command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        return Lines(output.decode("utf-8", "replace").splitlines())

    def _shell(
        self, program: list[str], script: str, arguments: list[str] | None = None, **streams: Any
    ) -> "subprocess.CompletedProcess[bytes]":
        if re.search(r"\b(pip3?|conda|mamba)\s+install\b", script):
            self._note("installing packages is not possible; the lab image's packages are used")
        return subprocess.run(
            [*program, "-c", _NO_INSTALL + "\n" + script, program[0], *(arguments or [])],
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_OFFLINE},
            **streams,
        )

    def _filled(self, text: str, local: dict[str, Any]) -> str:
        """`{expression}` and `$name` replaced by their values; all of it is left alone where that is not possible."""
        names = {**self.user_ns, **local}
        try:
            parts = []
            for literal, expression, form, _ in string.Formatter().parse(text):
                parts.append(_DOLLAR.sub(lambda found: str(names.get(found[1], found[0])), literal))
                if expression is not None:
                    parts.append(format(eval(expression, self.user_ns, local), form or ""))  # noqa: S307 - as above
            return "".join(parts)
        except Exception:
            return text

    def _change_folder(self, line: str) -> None:
        words = [word for word in shlex.split(line) if word != "-q"]
        target = words[0] if words else "~"
        target = self._last_folder or "." if target == "-" else os.path.expanduser(target)
        self._last_folder = os.getcwd()
        os.chdir(target)

    def _environment(self, line: str) -> Any:
        if not line.strip():
            return dict(os.environ)
        name, separator, value = line.strip().partition("=" if "=" in line else " ")
        if separator:
            os.environ[name.strip()] = value.strip()
            return None
        return os.environ.get(name)

    def _run_file(self, line: str) -> None:
        words = shlex.split(line)
        options = [word for word in words if word.startswith("-")]
        start = next((index for index, word in enumerate(words) if not word.startswith("-")), None)
        if start is None or words[start].endswith(".ipynb"):
            self._note(f"%run {line} ignored")
            return
        path = os.path.expanduser(words[start])
        if not os.path.exists(path) and os.path.exists(f"{path}.py"):
            path += ".py"
        before, sys.argv = sys.argv, [path, *words[start + 1 :]]
        try:
            made = runpy.run_path(os.path.abspath(path), self.user_ns if "-i" in options else None, "__main__")
        finally:
            sys.argv = before
        self.user_ns.update({name: value for name, value in made.items() if not name.startswith("__")})

    def _note(self, text: str) -> None:
        if text not in self._notes and len(self._notes) < 32:
            self._notes.append(text[:190])


def plain_progress(module: Any) -> None:
    """Patches `tqdm.notebook`, whose bars need widgets that the image has not: its names draw plain bars."""
    plain = sys.modules["tqdm.std"]
    module.tqdm = module.tqdm_notebook = plain.tqdm
    module.trange = module.tnrange = plain.trange


def _statement(name: str, line: str) -> str:
    """The statement of a line magic, without its options such as `-n 10 -r3 -o`."""
    rest = line.lstrip()
    while (option := _OPTION.match(rest)) is not None:
        letter, attached = option.groups()
        rest = rest[option.end() :]
        if letter in _TAKES_VALUE.get(name, "") and not attached:
            rest = rest.partition(" ")[2].lstrip()
    return rest


def _leave(code: Any = None) -> None:
    raise SystemExit(code)
