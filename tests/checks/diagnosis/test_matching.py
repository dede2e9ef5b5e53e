"""Which exceptions are diagnosed, which are not, and what a learner's text can do to the answer: nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.diagnosis import diagnose
from checks.diagnosis.matching import shorten
from checks.diagnosis.message import read
from checks.diagnosis.rows import exception_rows
from grader_service.model.base import neutralise
from grader_service.model.discovery import LearnerException
from grader_service.model.feedback import MAX_SENTENCE
from grader_service.model.place import Place

DALI = """Critical error in pipeline:
Critical error in pipeline:
Error in CPU operator `nvidia.dali.fn.{operator}`,
which was used in the pipeline definition with the following traceback:

  File "{file}", line 12, in pipeline
    images = fn.{operator}(jpegs)

encountered:

{inner}
C++ context: [/opt/dali/dali/some/file.cc:84]
Current pipeline object is no longer valid.
Current pipeline object is no longer valid."""


def an_exception(name, message="", source="", line=7):
    """An exception at a line of the learner's own."""
    return LearnerException(type=name, message=message, place=Place(file="submission.py", line=line, source=source))


HONEST = [
    ("ValueError", "need at least 100 images, found 12", "raise ValueError(f'need at least 100 images, found {n}')"),
    ("ValueError", "could not convert string to float: 'a'", "value = float(text)"),
    ("ValueError", "not enough values to unpack (expected 2, got 1)", "name, suffix = path.split('.')"),
    ("ValueError", "invalid literal for int() with base 10: 'ten'", "count = int('ten')"),
    ("ValueError", "not enough values to unpack (expected 2, got 1)", "for name, kind in data.items():"),
    ("ValueError", "not enough values to unpack (expected 2, got 1)", "name, kind = next(rows)"),
    ("StopIteration", "", "path = next(path for path in paths if path.suffix == '.jpg')"),
    ("StopIteration", "", "path = next(iter(path for path in iterdir if path.suffix == '.jpg'))"),
    ("StopIteration", "", "line = next(file)"),
    ("ZeroDivisionError", "float division by zero", "mean = total / count"),
    ("TypeError", "unsupported operand type(s) for +: 'NoneType' and 'int'", "value = generate(3) + 1"),
    ("AttributeError", "'NoneType' object has no attribute 'run'", "result = shell.run()"),
    ("AttributeError", "'dict' object has no attribute 'size'", "raise AttributeError(text)"),
    ("KeyError", "'images'", "images = config['images']"),
    ("KeyError", "0", "first = table[0]"),
    ("KeyError", "'DATA_ROOT'", "root = os.environ['DATA_ROOT']"),
    ("IndexError", "list index out of range", "path = paths[100]"),
    ("StopIteration", "", "raise StopIteration"),
    ("NotImplementedError", "", "raise NotImplementedError"),
    ("NotImplementedError", "", "return self.transform(image)"),
    ("AssertionError", "", "assert len(paths) >= 100"),
    ("AssertionError", "no images", "assert paths, 'no images'"),
    ("AttributeError", "'NoneType' object has no attribute 'group'", "name = re.match('a', 'b').group()"),
    ("AttributeError", "'Config' object has no attribute 'size'", "size = config.size"),
    ("AttributeError", "'list' object has no attribute 'add'", "paths.add(path)"),
    ("TypeError", "unsupported operand type(s) for +: 'int' and 'str'", "total = 1 + '2'"),
    ("TypeError", "'<' not supported between instances of 'NoneType' and 'int'", "if limit < 3:"),
    ("TypeError", "'int' object is not callable", "size()"),
    ("TypeError", "main() takes 0 positional arguments but 1 was given", "main(3)"),
    ("ZeroDivisionError", "division by zero", "x = a / b"),
    ("RuntimeError", "my own trouble", "raise RuntimeError('my own trouble')"),
    ("RuntimeError", "something else", "work()"),
    ("UnicodeDecodeError", "'utf-8' codec can't decode byte 0xff in position 0", "text = path.read_text()"),
    ("KeyboardInterrupt", "", "time.sleep(3)"),
    ("MyOwnError", "CUDA", "run()"),
    ("", "", ""),
]


@pytest.mark.parametrize(("name", "message", "source"), HONEST)
def test_an_honest_exception_has_no_diagnosis(name, message, source):
    """What no row is about is left to the learner; a wrong cause would be worse than none."""
    assert diagnose(an_exception(name, message, source)) is None


@pytest.mark.parametrize(
    "message",
    [
        "ProcessGroupNCCL is only supported with GPUs, no GPUs found!",  # torch 2.11
        "nccl2 requires at least one CUDA device",  # torch 2.15
    ],
)
def test_a_mistake_is_known_in_the_words_of_each_torch(message):
    """The shipped one, and the newest that a lab image can be built with."""
    assert diagnose(an_exception("RuntimeError", message)).id == "nccl_without_gpu"


def test_what_the_learner_raises_is_the_learners():
    """The words of a library in an exception of one's own explain nothing, unless a library's report is passed on."""
    words = "Assert failed: No files found."
    assert diagnose(an_exception("RuntimeError", words, "images = load()")) is not None
    assert diagnose(an_exception("RuntimeError", words, "raise RuntimeError('... No files found.')")) is None
    report = DALI.format(operator="readers.file", file="/workspace/submission.py", inner=words)
    assert diagnose(an_exception("RuntimeError", report, "raise RuntimeError(str(error))")).id == "no_files_found"


def test_specific_rows_come_before_general_ones():
    """A message that rows of two orders match is answered by the more specific one."""
    report = DALI.format(operator="readers.file", file="/workspace/submission.py", inner="No files found.")
    unknown = report.replace("No files found", "A tide of ink came in")
    known = report.replace("No files found.", 'Assert on "SizeImpl() > 0" failed: No files found.')
    assert diagnose(an_exception("RuntimeError", known)).id == "no_files_found"
    assert diagnose(an_exception("RuntimeError", unknown)).id == "operator_stopped"
    missing = "[Errno 2] No such file or directory: '{}'"
    assert diagnose(an_exception("FileNotFoundError", missing.format("nvidia-smi"))).id == "nvidia_smi"
    loader = an_exception("FileNotFoundError", missing.format("data"), "data = ImageFolder('data')")
    assert diagnose(loader).id == "image_folder_missing"
    assert diagnose(an_exception("FileNotFoundError", missing.format("data"))).id == "folder_missing"


@pytest.mark.parametrize(
    ("file", "cell", "name"),
    [
        ("/workspace/submission.py", None, "submission.py"),
        ("/tmp/notebook-cells/cell_004.py", 4, "cell_004.py"),
        ("graph.py", None, "graph.py"),
    ],
)
def test_the_graphs_own_line_is_read_from_dalis_report(file, cell, name):
    """File, line, source and operator come from the report, for modules and for cells of a notebook."""
    report = DALI.format(operator="decoders.image", file=file, inner="nvImageCodec failure: '#4'")
    found = diagnose(an_exception("RuntimeError", report, "pipe.run()"))
    assert (found.id, found.operator) == ("dali_decode", "fn.decoders.image")
    assert found.place == Place(
        file=name, line=12, cell=cell, source="images = fn.decoders.image(jpegs)", function="pipeline"
    )


def test_a_report_that_was_cut_is_still_read():
    """Evidence holds the first 4,000 characters; the operator's row answers as long as its text is among them."""
    report = DALI.format(
        operator="readers.file", file="/workspace/submission.py", inner="No files found. " + "x" * 9000
    )
    cut = an_exception("RuntimeError", report.replace("No files", "failed: No files")[:4000])
    assert diagnose(cut).id == "no_files_found"
    assert diagnose(an_exception("RuntimeError", report[:300])).id == "operator_stopped"


def test_the_error_proper_is_taken_out_of_the_report():
    """What DALI adds before and behind it is not part of it."""
    report = DALI.format(operator="resize", file="a.py", inner="Two\nlines.")
    assert read(an_exception("RuntimeError", report)).texts[0] == "Two\nlines."


@pytest.mark.parametrize("value", ["{0}", "{name!r}", "%s%n", "{path.__class__}", "}{", "\\N{BULLET}", "{{}}"])
def test_format_characters_of_a_learner_are_only_text(value):
    """Braces and percent signs in a message stand in the answer as they are."""
    found = diagnose(an_exception("FileNotFoundError", f"[Errno 2] No such file or directory: '/data/{value}'"))
    assert f"`/data/{value}`" in found.cause


def test_a_learners_text_is_shortened_and_made_safe():
    """Long values are cut, line breaks become blanks, and characters that move a cursor are replaced."""
    found = diagnose(an_exception("NameError", f"name '{'x' * 60}' is not defined"))
    assert len(f"{found.cause} {found.remedy}") <= MAX_SENTENCE
    path = "a\x1b[2Jb\u202ec" + "y" * 190
    found = diagnose(an_exception("FileNotFoundError", f"[Errno 2] No such file or directory: '{path}'"))
    assert "\x1b" not in f"{found.cause} {found.remedy}"
    assert "\u202e" not in f"{found.cause} {found.remedy}"
    assert len(f"{found.cause} {found.remedy}") <= MAX_SENTENCE
    assert shorten("a\n b\t c") == "a b c"
    assert len(shorten("z" * 5000)) == 80


_PIECES = [part for row in exception_rows() for part in (*row.contains, row.example or "") if part]
_TYPES = sorted({name for row in exception_rows() for name in row.exceptions})


@given(
    name=st.sampled_from(_TYPES) | st.text(max_size=40),
    message=st.lists(st.sampled_from(_PIECES) | st.text(max_size=60), max_size=8).map("\n".join),
    source=st.text(max_size=200) | st.sampled_from(["pipe.run()", "next(dali_iter)", "raise ValueError"]),
    line=st.integers(1, 10_000_000),
)
def test_any_exception_is_answered_safely(name, message, source, line):
    """Whatever a learner's code raises, the answer is None or short, one line long, and free of control characters."""
    found = diagnose(an_exception(name, message[:8192], source, line))
    if found is not None:
        assert len(f"{found.cause} {found.remedy}") <= MAX_SENTENCE
        assert "\n" not in f"{found.cause} {found.remedy}"
        assert neutralise(f"{found.cause} {found.remedy}") == f"{found.cause} {found.remedy}"


@pytest.mark.parametrize("filler", ["a", "1, ", "'", "\n"])
def test_hostile_messages_of_full_length_are_answered(filler):
    """Each row's own texts, repeated up to the longest message there is, are matched in the time of a test."""
    for piece in {piece for row in exception_rows() for piece in row.contains} | {
        "Error in CPU operator `",
        "[",
        "got (",
    }:
        message = (piece + filler) * (8192 // len(piece + filler))
        for name in ("RuntimeError", "TypeError", "OSError"):
            diagnose(an_exception(name, message, (piece * 9)[:200]))
