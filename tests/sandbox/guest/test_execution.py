"""A submission runs once, as a module does, and its end is told by the learner's own lines."""

import os
import textwrap
import time

import pytest

from grader_service.model.discovery import LearnerException
from sandbox.guest.learner import deadline
from sandbox.guest.learner.execution import bring_files
from tests.sandbox.guest.conftest import forked
from tests.sandbox.guest.runs import run_module

pytestmark = pytest.mark.integration


@pytest.fixture
def module(tmp_path):
    """Runs a module in a child."""

    def run(source, **options):
        text = source if isinstance(source, bytes) else textwrap.dedent(source)
        return forked(lambda: run_module(tmp_path, text, **options))

    return run


def where(run):
    """(file, line, source) of the innermost line, after the host's model has read the exception."""
    place = LearnerException.model_validate(run["exception"]).place
    return (place.file, place.line, place.source) if place else None


def test_a_module_runs_as_main(module, tmp_path):
    """It is `__main__` with its file, its arguments, its folder as working directory, and a real `__builtins__`."""
    run = module(
        """
        import builtins, os, sys
        seen = [__name__, __file__, sys.argv, os.getcwd(), sys.path[0], __builtins__ is builtins]
        seen += [sys.modules["__main__"].__dict__ is globals(), __spec__, __package__]
        if __name__ == "__main__":
            guarded = True
        """,
        names="seen guarded",
    )
    path = str(tmp_path / "submission.py")
    assert run["ran"] == "completed"
    assert run["exception"] is None
    assert run["seen"] == ["__main__", path, [path], str(tmp_path), str(tmp_path), True, True, None, None]
    assert run["guarded"] is True
    assert 0 < run["duration_s"] < 10


def test_an_entry_point_in_a_folder_runs_there(module, tmp_path):
    """The folder of the entry point is the working directory and the first place for imports."""
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "helper.py").write_text("VALUE = 41")
    run = module("import os, helper\nseen = [os.getcwd(), helper.VALUE]", entry="lab/submission.py", names="seen")
    assert run["seen"] == [str(tmp_path / "lab"), 41]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (b"\xef\xbb\xbfvalue = 'caf\xc3\xa9'\n", "café"),
        (b"# -*- coding: latin-1 -*-\nvalue = 'caf\xe9'\n", "café"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nvalue = '\x80'\n", "€"),
        (b"value = '''a\r\nb'''\r\nif value:\r\n    value = value + '!'\r\n", "a\nb!"),
        (b"value = 'no newline at the end'", "no newline at the end"),
        (b"from __future__ import annotations\ndef f(x: Missing): ...\nvalue = 'later'\n", "later"),
    ],
    ids=["BOM", "latin-1", "cp1252", "CRLF", "no newline", "future"],
)
def test_every_kind_of_source_file_runs(module, source, value):
    """BOM, coding lines, Windows line ends and future imports are read as Python reads them."""
    assert module(source, names="value")["value"] == value


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (b"x = 'caf\xe9'\n", "SyntaxError"),
        (b"x = 1\0\n", "SyntaxError"),
        (b"# coding: no-such-codec\n", "SyntaxError"),
        (b"x = 1\n  y = 2\n", "IndentationError"),
        (b"def f(:\n", "SyntaxError"),
    ],
)
def test_what_does_not_compile_is_an_exception_of_the_learner(module, source, kind):
    """A file that is no Python ends as `raised`, never as an error of ours."""
    run = module(source)
    exception = LearnerException.model_validate(run["exception"])
    # Python 3.11 calls NUL bytes a ValueError.
    assert run["ran"] == "raised"
    assert exception.type in (kind, "ValueError")


def test_a_syntax_error_is_shown_with_its_line(module):
    """The place of a syntax error is the line that does not parse."""
    run = module("a = 1\nb = (2,\n  3)\nc = = 3\n")
    assert (run["ran"], run["exception"]["type"]) == ("raised", "SyntaxError")
    assert where(run) == ("submission.py", 4, "c = = 3")


def test_an_exception_is_shown_with_the_learners_own_lines(module, tmp_path):
    """Frames of installed code are left out; a sibling module's are in; the innermost is the place."""
    (tmp_path / "helper.py").write_text("import json\n\ndef parse(text):\n    return json.loads(text)\n")
    run = module(
        """
        import helper

        def main():
            return helper.parse("{")

        main()
        """
    )
    exception = LearnerException.model_validate(run["exception"])
    assert exception.type == "JSONDecodeError"
    assert [(frame.file, frame.line, frame.function) for frame in exception.frames] == [
        ("submission.py", 7, "<module>"),
        ("submission.py", 5, "main"),
        ("helper.py", 4, "parse"),
    ]
    assert where(run) == ("helper.py", 4, "return json.loads(text)")


def test_a_deep_recursion_is_reported_in_bounded_size(module):
    """A thousand frames become the innermost 32."""
    run = module("def f():\n    f()\nf()\n")
    exception = LearnerException.model_validate(run["exception"])
    assert exception.type == "RecursionError"
    assert len(exception.frames) == 32


@pytest.mark.parametrize(
    "body",
    [
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "class E(Exception):\n    def __str__(self): return 'x' * 10**7\nraise E",
        "class M(type):\n    __name__ = property(lambda c: 1 / 0)\nclass E(Exception, metaclass=M): pass\nraise E",
        "raise SyntaxError('odd', (object(), 'five', None, None))",
        "raise SyntaxError('odd', ('/x', 10**30, 1, 'x'))",
        "raise ExceptionGroup('two', [ValueError(1), TypeError(2)])",
        "raise BaseException('bare')",
        "raise KeyboardInterrupt",
        "raise GeneratorExit",
        "raise type('E' * 5000, (Exception,), {})('\\ud800')",
    ],
)
def test_any_exception_can_be_told(module, body):
    """Exceptions whose text raises, is huge or odd are described all the same."""
    run = module(body)
    assert run["ran"] == "raised"
    LearnerException.model_validate(run["exception"])


def test_a_message_that_never_ends_is_not_waited_for(module, monkeypatch):
    """Nor one that catches the interruption: it comes again and again."""
    monkeypatch.setattr(deadline, "_QUESTIONS_S", 0.3)
    monkeypatch.setattr(deadline, "_AGAIN_S", 0.1)
    for body in (
        "while True: pass",
        "try:\n            while True: pass\n        finally:\n            while True: pass",
    ):
        run = module(f"class E(Exception):\n    def __str__(self):\n        {body}\nraise E")
        exception = LearnerException.model_validate(run["exception"])
        assert (run["ran"], exception.type, exception.place.line) == ("raised", "E", 3 + body.count("\n") + 1)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit(0)", 0),
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit('out of data')", 1),
        ("raise SystemExit(10**40)", 255 & 10**40),
        ("exit(4)", 4),
        ("quit()", 0),
    ],
)
def test_leaving_early_is_its_own_ending(module, statement, code):
    """`sys.exit` and `exit` end the run with their code, and what was defined before stays."""
    run = module(f"value = 1\n{statement}\nvalue = 2\n", names="value")
    assert (run["ran"], run["exit_code"], run["value"]) == ("exited", code, 1)
    assert where(run)[1] == 2


@pytest.mark.parametrize("last", ["sys.exit(main())", 'if __name__ == "__main__":\n    sys.exit(main())'])
@pytest.mark.parametrize(("status", "ran"), [("", "completed"), ("0", "completed"), ("1", "exited")])
def test_an_exit_without_fault_in_the_last_statement_is_the_end(module, last, status, ran):
    """As scripts with a `main` end: nothing was left to run."""
    run = module(f"import sys\nvalue = 1\ndef main():\n    return {status or None}\n{last}\n", names="value")
    assert (run["ran"], run["value"]) == (ran, 1)


def test_reading_from_the_keyboard_finds_none(module):
    """`input()` is an EOFError at the learner's line, not a hang."""
    run = module("name = input('Your name? ')\n")
    assert run["exception"]["type"] == "EOFError"
    assert where(run)[1] == 1


def test_an_endless_loop_ends_with_its_line(module):
    """Time is up: `timed_out`, with the line that was running and all that was defined before."""
    run = module("value = 7\ndef spin():\n    while True:\n        pass\nspin()\n", timeout_s=1.5, names="value")
    assert run["ran"] == "timed_out"
    assert run["value"] == 7
    exception = LearnerException.model_validate(run["exception"])
    assert [frame.function for frame in exception.frames] == ["<module>", "spin"]
    assert exception.place.line in (3, 4)
    assert "stopped after" in exception.message
    assert 1.4 < run["duration_s"] < 20


def test_a_broad_except_does_not_swallow_the_timeout(module):
    """`except Exception` in a loop is left by the timeout."""
    run = module(
        """
        import time
        caught = 0
        while True:
            try:
                time.sleep(60)
            except Exception:
                caught += 1
        """,
        timeout_s=1.0,
        names="caught",
    )
    assert (run["ran"], run["caught"]) == ("timed_out", 0)


@pytest.mark.parametrize("clause", ["except:", "except BaseException:", "finally:"])
def test_code_that_catches_everything_is_left_where_it_stands(tmp_path, clause):
    """After the grace the pod goes on above the learner's stack, with the line where the time was up."""

    def run_and_leave():
        def abandon(outcome, module):
            (tmp_path / "told").write_text(f"{outcome.ran} {outcome.exception['place']['line']} {module.value}")
            os._exit(0)

        source = (
            f"import time\nvalue = 5\nwhile True:\n    try:\n        time.sleep(60)\n    {clause}\n        continue\n"
        )
        run_module(tmp_path, source, timeout_s=1.0, grace_s=0.3, abandon=abandon)

    with pytest.raises(AssertionError, match="without an answer"):
        forked(run_and_leave, timeout=10.0)
    assert (tmp_path / "told").read_text() == "timed_out 5 5"


def test_cleaning_up_after_the_timeout_is_possible(module):
    """A `finally` that takes a moment runs to its end, and an error in it does not hide the timeout."""
    run = module(
        """
        import time
        try:
            time.sleep(60)
        finally:
            time.sleep(0.3)
            cleaned = True
            raise RuntimeError("DataLoader worker exited unexpectedly")
        """,
        timeout_s=1.0,
        names="cleaned",
    )
    assert (run["ran"], run["cleaned"], run["exception"]["type"]) == ("timed_out", True, "LearnerTimeout")
    assert where(run)[1] == 4


def test_nothing_rings_after_the_end(tmp_path):
    """The clock of a run that ended in time does not disturb what follows."""

    def run():
        result = run_module(tmp_path, "x = 1\n", timeout_s=1.0)
        time.sleep(1.3)
        return result["ran"]

    assert forked(run) == "completed"


def test_classes_of_the_submission_are_classes_of_main(module):
    """Dataclasses, pickling, typing and inspect find the submission's classes in `__main__`."""
    run = module(
        """
        import dataclasses, inspect, pickle, typing

        @dataclasses.dataclass
        class Row:
            path: str
            label: "int" = 0
            tags: typing.ClassVar[list] = []

        copy = pickle.loads(pickle.dumps(Row("a", 3)))
        hints = sorted(typing.get_type_hints(Row))
        text = inspect.getsource(Row).splitlines()[1]
        same = type(copy) is Row
        """,
        names="copy hints text same",
    )
    assert run["ran"] == "completed"
    assert run["copy"] == "Row(path='a', label=3)"
    assert run["hints"] == ["label", "path", "tags"]
    assert run["text"].startswith("class Row")
    assert run["same"]


def test_spawned_loader_workers_can_import_the_submission(module, lab):
    """A DataLoader with spawn-started workers reads a dataset class of the submission.

    What `main()` sets with `global`, behind the usual guard, is seen afterwards.
    """
    run = module(
        """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self):
                return 6

            def __getitem__(self, index):
                return torch.tensor(index)

        def main():
            global total
            loader = DataLoader(Numbers(), batch_size=3, num_workers=1, multiprocessing_context="spawn")
            total = int(sum(batch.sum() for batch in loader))

        if __name__ == "__main__":
            main()
        """,
        timeout_s=200.0,
        names="total",
    )
    assert (run["ran"], run["total"]) == ("completed", 15)


def test_the_submission_is_copied_into_the_workspace(tmp_path):
    """Files, folders and links arrive; what is there already stays."""
    submission, workspace = tmp_path / "submission", tmp_path / "workspace"
    (submission / "data").mkdir(parents=True)
    (submission / "submission.py").write_text("x = 1")
    (submission / "data" / "a.jpg").write_bytes(b"x")
    (submission / "link").symlink_to("data/a.jpg")
    workspace.mkdir()
    (workspace / "kept").write_text("kept")
    bring_files(str(submission), str(workspace))
    assert (workspace / "data" / "a.jpg").read_bytes() == b"x"
    assert os.readlink(workspace / "link") == "data/a.jpg"
    assert (workspace / "kept").read_text() == "kept"
