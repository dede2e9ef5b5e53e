"""A whole artifact, through the child process that opens it: what arrives for a pod, and what never does."""

import hashlib
import json
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from grader_service.errors import InfrastructureError
from grader_service.ingest.artifact import Artifact, Prepared, artifact_at, kind_of, prepare
from grader_service.ingest.limits import IngestLimits
from tests.ingest.packing import SOURCE, notebook, pack, refusal, tar_bytes, zip_bytes
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

LIMITS = IngestLimits()


@pytest.fixture
def into(tmp_path):
    """An empty folder for the submission's files."""
    folder = tmp_path / "submission"
    folder.mkdir()
    return folder


@pytest.fixture
def artifact(tmp_path):
    """Makes an artifact of these bytes under this name."""

    def make(filename, content):
        path = tmp_path / filename
        path.write_bytes(content)
        return artifact_at(path)

    return make


def rejection(artifact, into, limits=LIMITS):
    return refusal(prepare, artifact, into, limits)


def workers():
    """Processes of ours that open artifacts."""
    return [child for child in psutil.Process().children(recursive=True) if "grader_service.ingest" in cmdline(child)]


def cmdline(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_measuring_opens_nothing(tmp_path):
    """Name, size and hash, of the bytes as they are."""
    path = tmp_path / "a b.py"
    path.write_bytes(SOURCE)
    assert artifact_at(path) == Artifact("a b.py", path, hashlib.sha256(SOURCE).hexdigest(), len(SOURCE))


@pytest.mark.parametrize(
    ("filename", "kind"),
    [
        ("a.py", "py"),
        ("A.PY", "py"),
        ("a.ipynb", "ipynb"),
        ("a.zip", "zip"),
        ("a.tar", "tar"),
        ("a.tar.gz", "tar"),
        ("a.b.TGZ", "tar"),
        ("ü.ipynb", "ipynb"),
    ],
)
def test_the_ending_decides_the_kind(filename, kind):
    """In any case of letters."""
    assert kind_of(filename) == kind


@pytest.mark.parametrize("filename", ["a", "a.rar", "a.gz", "py", "a.py.exe", "a.docx", "", "\x1b[31m.exe", "a" * 5000])
def test_other_endings(filename):
    """The message shows the name without its control characters, and lists what can be sent."""
    code, feedback = refusal(kind_of, filename)
    assert code == "submission.unknown_type"
    assert len(feedback) < 300
    for ending in (".py", ".ipynb", ".zip", ".tar.gz"):
        assert ending in feedback


@pytest.mark.parametrize("source", [SOURCE, b"\xef\xbb\xbfx = 1", b"\xff\xfex\0", b"# coding: latin-1\n\xe9", b"\0\0"])
def test_a_module_arrives_byte_for_byte(artifact, into, source):
    """Encodings, marks and NUL bytes are the pod's compiler's business."""
    assert prepare(artifact("my lab.py", source), into) == Prepared(entry="submission.py", cells=None)
    assert (into / "submission.py").read_bytes() == source


@pytest.mark.parametrize(("mode", "after"), [(0o775, 0o775), (0o700, 0o755)])
def test_a_folder_that_is_open_to_pods_stays_as_it_is(artifact, into, mode, after):
    """It may be another's, whose mode only he may change: that of a pod broker. One that is closed is opened."""
    into.chmod(mode)
    prepare(artifact("lab.py", b"x = 1"), into)
    assert into.stat().st_mode & 0o777 == after


def test_a_notebook_arrives_with_its_cells(artifact, into):
    """The file itself is there too, and cells are numbered among the code cells."""
    content = notebook("x = 1", {"cell_type": "markdown", "metadata": {}, "id": "m", "source": "# Hi"}, "%time y = 2")
    prepared = prepare(artifact("My Lab.IPYNB", content), into)
    cells = ((1, "x = 1"), (2, "get_ipython().run_line_magic('time', 'y = 2')\n"))
    assert prepared == Prepared(entry="submission.ipynb", cells=cells)
    assert (into / "submission.ipynb").read_bytes() == content


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_an_archive_arrives_with_its_entry_point(artifact, into, kind):
    """Its own name for the entry point is kept."""
    members = [("p/lab.ipynb", notebook("x = 1")), ("p/src/helpers.py", SOURCE), ("p/data/é.txt", b"1")]
    assert prepare(artifact(f"x.{kind}", pack(kind, members)), into) == Prepared(
        entry="lab.ipynb", cells=((1, "x = 1"),)
    )
    assert (into / "data" / "é.txt").read_bytes() == b"1"


@pytest.mark.parametrize("mask", [0o077, 0o000])
def test_the_pods_uid_can_read_everything(artifact, into, mask):
    """Whatever the grader's umask is: folders 0755, files 0644, nothing else."""
    members = [("submission.py", SOURCE), ("a/b/c.txt", b"1")]
    before = os.umask(mask)
    try:
        prepare(artifact("x.zip", pack("zip", members)), into)
    finally:
        os.umask(before)
    for path in [into, *into.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path


@pytest.mark.parametrize("filename", ["a.py", "a.ipynb", "a.zip", "a.tar"])
def test_an_empty_file(artifact, into, filename):
    """Nothing was sent."""
    code, feedback = rejection(artifact(filename, b""), into)
    assert code == "submission.empty"
    assert "Send the module, notebook or archive itself" in feedback


@pytest.mark.parametrize(
    ("filename", "content", "limits", "code"),
    [
        ("a.py", bytes(2 << 20), IngestLimits(source_bytes=1 << 20), "submission.too_large"),
        ("a.py", bytes(2 << 20), IngestLimits(artifact_bytes=1 << 20), "submission.too_large"),
        ("a.zip", bytes(2 << 20), IngestLimits(artifact_bytes=1 << 20), "submission.too_large"),
        ("a.ipynb", notebook("x = 1", "y" * 70_000), IngestLimits(notebook_bytes=1 << 16), "notebook.too_large"),
        (
            "a.zip",
            zip_bytes([("submission.py", bytes(2 << 20))]),
            IngestLimits(source_bytes=1 << 20),
            "submission.too_large",
        ),
        (
            "a.zip",
            zip_bytes([("a.ipynb", notebook("y" * 70_000))]),
            IngestLimits(notebook_bytes=1 << 16),
            "notebook.too_large",
        ),
        ("a.zip", zip_bytes([("a.py", bytes(2 << 20))]), IngestLimits(unpacked_bytes=1 << 20), "archive.too_large"),
    ],
)
def test_sizes(artifact, into, filename, content, limits, code):
    """Every size has its limit; those that are passed in reach the child."""
    found, feedback = rejection(artifact(filename, content), into, limits)
    assert found == code
    assert "MiB" in feedback


@pytest.mark.parametrize(
    ("filename", "content", "code"),
    [
        ("a.zip", b"garbage", "archive.unreadable"),
        ("a.tar", tar_bytes([("../x.py", b"")]), "archive.traversal"),
        ("a.zip", zip_bytes([("README.md", b"")]), "entry.none"),
        ("a.zip", zip_bytes([("a.py", b""), ("b.py", b"")]), "entry.ambiguous"),
        ("a.ipynb", b"garbage", "notebook.unreadable"),
        ("a.ipynb", notebook(), "notebook.no_code"),
        ("a.zip", zip_bytes([("a.ipynb", b"{}")]), "notebook.unreadable"),
    ],
)
def test_rejections_come_through(artifact, into, filename, content, code):
    """What the child refuses is refused here, in its words."""
    found, feedback = rejection(artifact(filename, content), into)
    assert found == code
    assert len(feedback) > 40


def test_half_characters_are_no_failure_of_ours(artifact, into):
    """Lone surrogates, which JSON can spell and UTF-8 cannot, end as a rejection that names the cell."""
    content = notebook("x = 1", 's = "#"').replace(b"#", b"\\ud800")
    code, feedback = rejection(artifact("a.ipynb", content), into)
    assert (code, "Code cell 2" in feedback) == ("notebook.unreadable", True)


def test_memory_is_limited(artifact, into):
    """A notebook that takes a hundred times its size in memory is refused; the grader's own memory stays as it is."""
    content = b'{"nbformat": 4, "cells": [' + b"[[]]," * 3_000_000 + b"0]}"
    code, feedback = rejection(artifact("a.ipynb", content), into, IngestLimits(worker_memory_bytes=250 << 20))
    assert code == "submission.too_large"
    assert "more memory than any honest one" in feedback
    assert workers() == []


def test_processor_time_is_limited(artifact, into):
    """A notebook that keeps its reader busy is stopped."""
    content = notebook("\n".join(["%magic"] * 399 + ["x = (1, 2, 3)"] * 20_000 + ["?"]))
    started = time.monotonic()
    code, feedback = rejection(artifact("a.ipynb", content), into, IngestLimits(worker_cpu_s=2))
    assert code == "submission.too_costly"
    assert "more time than any honest one" in feedback
    assert time.monotonic() - started < 30
    assert workers() == []


@pytest.fixture
def stuck(tmp_path):
    """An artifact that nobody can finish reading."""
    path = tmp_path / "stuck.zip"
    os.mkfifo(path)
    return Artifact(path.name, path, "0" * 64, 100)


def test_wall_time_is_limited(stuck, into):
    """A reader that waits for ever is stopped, too, and leaves no process."""
    started = time.monotonic()
    assert rejection(stuck, into, IngestLimits(worker_wall_s=1))[0] == "submission.too_costly"
    assert time.monotonic() - started < 20
    assert workers() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_reader_that_we_stop_is_not_the_learners_fault(stuck, into, number):
    """A shutdown of the service, or a kernel short of memory, costs nobody an attempt."""
    # A shell's background job is born with this signal ignored, and its children with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    killer = threading.Thread(target=_kill_worker, args=(number,))
    killer.start()
    with pytest.raises(InfrastructureError):
        prepare(stuck, into)
    killer.join()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGXCPU, signal.SIGABRT])
def test_a_reader_that_crashes_is(stuck, into, number):
    """A parser that dies of what it reads is the artifact's doing."""
    killer = threading.Thread(target=_kill_worker, args=(number,))
    killer.start()
    assert rejection(stuck, into)[0] == "submission.too_costly"
    killer.join()


def _kill_worker(number):
    def waits(worker):
        # For the artifact; before, Python might turn a signal into something else.
        return worker.status() == psutil.STATUS_SLEEPING and time.time() - worker.create_time() > 1.5

    wait_for(lambda: [worker for worker in workers() if waits(worker)], 10, 0.05)[0].send_signal(number)


def test_a_file_that_changes_meanwhile(artifact, into):
    """What was hashed is what is run: the verdict names the hash."""
    measured = artifact("a.py", SOURCE)
    measured.path.write_bytes(b"something else")
    code, feedback = rejection(measured, into)
    assert code == "submission.changed"
    assert "Send it again" in feedback


def test_a_file_that_went_away(artifact, into):
    """Our storage lost it; the learner is not to blame."""
    for filename in ("a.py", "a.zip"):
        measured = artifact(filename, SOURCE)
        measured.path.unlink()
        with pytest.raises(InfrastructureError):
            prepare(measured, into)


def test_a_disk_that_refuses(artifact, tmp_path):
    """Without a folder to write to, that is ours."""
    for filename, content in (("a.py", SOURCE), ("a.zip", zip_bytes([("submission.py", SOURCE)]))):
        with pytest.raises(InfrastructureError):
            prepare(artifact(filename, content), tmp_path / "missing")


def test_the_working_folder_lends_no_modules(artifact, into, tmp_path, monkeypatch):
    """A grader that stands among a learner's files imports none of them."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("json.py", "resource.py", "nbformat.py", "grader_service.py"):
        (here / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(here)
    assert prepare(artifact("a.ipynb", notebook("x = 1")), into).cells == ((1, "x = 1"),)
    assert not (tmp_path / "ran").exists()


def test_relative_paths(artifact, into, tmp_path, monkeypatch):
    """The command line is given paths as people type them; a module is run from its file and has no cells."""
    artifact("a.zip", zip_bytes([("submission.py", SOURCE)]))
    monkeypatch.chdir(tmp_path)
    assert prepare(artifact_at(Path("a.zip")), Path(into.name)) == Prepared(entry="submission.py", cells=None)


class TestWhatTheChildSays:
    """The child read hostile bytes: its answer is checked like a guest's."""

    @pytest.fixture
    def fails(self, artifact, into, tmp_path, monkeypatch):
        """Puts this program in the place of the interpreter that opens artifacts: our failure, told in these words."""

        def check(program, words="failed"):
            path = tmp_path / "child.sh"
            path.write_text(f"#!{sys.executable}\nimport sys, os, json\ninto = sys.argv[6]\n{program}\n")
            path.chmod(0o755)
            monkeypatch.setattr(sys, "executable", str(path))
            with pytest.raises(InfrastructureError, match=words):
                prepare(artifact("a.zip", b"x"), into)

        return check

    @pytest.mark.parametrize(
        "answer",
        [
            "",
            "{",
            "[]",
            "{}",
            '{"entry": "submission.py"}',
            '{"entry": "a.py", "cells": [[1, 2]]}',
            '{"code": "Not A Code", "feedback": ""}',
            '{"entry": "submission.py", "cells": null, "score": 1}',
        ],
    )
    def test_nonsense(self, fails, answer):
        """Anything but one of the two answers is our failure."""
        fails(f"open(into + '/submission.py', 'w'); print({answer!r})", "nonsense")

    @pytest.mark.parametrize("entry", ["../a.zip", "/etc/passwd", "missing.py", "folder", "", "./submission.py"])
    def test_an_entry_point_that_is_not_there(self, fails, entry):
        """It must be one of the files in the folder."""
        answer = json.dumps({"entry": entry, "cells": None})
        fails(f"os.mkdir(into + '/folder'); open(into + '/submission.py', 'w'); print({answer!r})", "left no")

    @pytest.mark.parametrize(
        "plant", ["os.symlink('/etc', into + '/etc')", "os.symlink('x', into + '/x')", "os.mkfifo(into + '/pipe')"]
    )
    def test_special_files(self, fails, plant):
        """Links and pipes are neither opened to pods nor followed."""
        before = os.stat("/etc").st_mode
        answer = json.dumps({"entry": "submission.py", "cells": None})
        fails(f"{plant}; open(into + '/submission.py', 'w'); print({answer!r})", "special file")
        assert os.stat("/etc").st_mode == before

    def test_a_crash(self, fails):
        """The end of what it said last is in the message for the operator."""
        fails("print('x' * 5000 + 'the reason', file=sys.stderr); sys.exit(3)", "failed with 3: x+the reason")

    def test_secrets_stay_here(self, fails, tmp_path, monkeypatch):
        """Of our environment it gets what Python needs, and nothing else."""
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        fails(f"json.dump(dict(os.environ), open({str(tmp_path / 'environment')!r}, 'w')); sys.exit(1)")
        assert "secret" not in (tmp_path / "environment").read_text()

    def test_no_interpreter(self, artifact, into, monkeypatch):
        """A child that cannot be started is our failure."""
        monkeypatch.setattr(sys, "executable", "/nonexistent/python")
        with pytest.raises(InfrastructureError, match="could not be started"):
            prepare(artifact("a.zip", b"x"), into)
