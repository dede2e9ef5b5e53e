"""Setting up on a bare machine: which index, which file from it, and what happens when it is not there."""

import hashlib
import io
import os
import platform
import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from images import bootstrap
from tests.conftest import missing
from tests.images.index_server import serve
from tests.levels.parts import ROOT

pytestmark = pytest.mark.integration

UV = f"#!/bin/sh\necho 'uv {bootstrap.UV_VERSION} (from the test)'\n".encode()
LOGIN = "course:s%40cret%2Fkey"
"""User and password as they stand in a URL."""
PLAIN_LOGIN = "course:s@cret/key"


def wheel(program=UV):
    """A wheel that holds only the program, with the same bytes at any time of day."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"uv-{bootstrap.UV_VERSION}.data/scripts/uv"), program)
    return out.getvalue()


@pytest.fixture
def filename(monkeypatch):
    """The pinned wheel, which is the test's own; its name needs quoting in a URL."""
    name = "uv-1+local.whl"
    pinned = (name, hashlib.sha256(wheel()).hexdigest())
    monkeypatch.setattr(bootstrap, "UV_WHEELS", {platform.machine(): pinned})
    return name


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine on which no index is configured."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(bootstrap, "GLOBAL_PIP_CONFIG", tmp_path / "etc-pip.conf")
    return tmp_path


def config(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


class TestIndex:
    """The index that this machine is configured for."""

    def test_the_environment_wins(self, bare, monkeypatch):
        """uv's newest name over its older one over pip's, over any file."""
        config(bare / "etc-pip.conf", "[global]\nindex-url = https://file/simple\n")
        for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
            monkeypatch.setenv(name, f"https://{name}/simple")
            assert bootstrap.index_url() == f"https://{name}/simple"

    def test_nothing_is_configured(self, bare, monkeypatch):
        """PyPI; an empty variable, as compose files leave them, is none."""
        monkeypatch.setenv("UV_DEFAULT_INDEX", "")
        assert bootstrap.index_url() == "https://pypi.org/simple"

    def test_nearer_files_win(self, bare, monkeypatch):
        """The machine's, the user's old and new one, then the one that is named."""
        monkeypatch.setenv("PIP_CONFIG_FILE", str(bare / "named.conf"))
        places = ["etc-pip.conf", "home/.pip/pip.conf", "home/.config/pip/pip.conf", "named.conf"]
        for place in places:
            config(bare / place, f"[global]\nindex-url = https://{place}/simple\n")
            assert bootstrap.index_url() == f"https://{place}/simple"

    def test_the_users_folder_can_be_elsewhere(self, bare, monkeypatch):
        """XDG_CONFIG_HOME names it."""
        monkeypatch.setenv("XDG_CONFIG_HOME", str(bare / "xdg"))
        config(bare / "xdg/pip/pip.conf", "[global]\nindex-url = https://xdg/simple\n")
        assert bootstrap.index_url() == "https://xdg/simple"

    @pytest.mark.parametrize(
        "line", ["index-url=https://a/simple", "index_url = https://a/simple", "Index-Url: https://a/simple"]
    )
    def test_spellings(self, bare, line):
        """All that pip takes."""
        config(bare / "etc-pip.conf", f"[global]\ntimeout = 60\n{line}\n[install]\nuser = no\n")
        assert bootstrap.index_url() == "https://a/simple"

    @pytest.mark.parametrize(
        "text", ["index-url = x", "[global\n", "[global]\nindex-url\n", b"\xff\xfe\x00", "[global]\n", ""]
    )
    def test_broken_files_are_passed_over(self, bare, text):
        """A file that pip would complain about does not stop the set-up; others still count."""
        config(bare / "etc-pip.conf", "[global]\nindex-url = https://good/simple\n")
        config(bare / "home/.pip/pip.conf", text)
        assert bootstrap.index_url() == "https://good/simple"

    def test_percent_signs_are_taken_literally(self, bare):
        """Passwords in URLs are full of them."""
        config(bare / "etc-pip.conf", "[global]\nindex-url = https://u:%40%2F@host/simple\n")
        assert bootstrap.index_url() == "https://u:%40%2F@host/simple"


class TestFetchingUv:
    """One wheel, by its name and its hash, from an index of any kind."""

    @pytest.mark.parametrize(
        "link",
        [
            "uv-1%2Blocal.whl",
            "uv-1+local.whl#sha256=abc",
            "../../files/uv-1%2Blocal.whl",
            "/files/uv-1+local.whl?x=1#y",
            "ABSOLUTE",
        ],
    )
    def test_links_of_every_kind(self, filename, tmp_path, link):
        """Beside the page, elsewhere on the host, absolute; with and without a fragment."""
        with serve(PLAIN_LOGIN) as index:
            for path in (
                "/simple/uv/uv-1%2Blocal.whl",
                "/simple/uv/uv-1+local.whl",
                "/files/uv-1%2Blocal.whl",
                "/files/uv-1+local.whl?x=1",
            ):
                index.bodies[path] = wheel()
            index.page("uv-0-old.whl", link.replace("ABSOLUTE", index.url("/files/uv-1%2Blocal.whl")), "uv-2.whl")
            bootstrap.install_uv(tmp_path / "uv", index.url("/simple/", LOGIN))
            assert len(index.asked) == 2
            assert {login for _, login in index.asked} == {PLAIN_LOGIN}
        assert subprocess.run([tmp_path / "uv"], check=True, capture_output=True).stdout.startswith(b"uv ")
        assert stat.S_IMODE((tmp_path / "uv").stat().st_mode) & 0o111 == 0o111
        assert [path.name for path in tmp_path.iterdir()] == ["uv"]

    def test_another_host_is_not_told_the_password(self, filename, tmp_path):
        """Neither for a link nor for a redirect."""
        with serve(PLAIN_LOGIN) as index, serve() as files:
            files.bodies["/uv-1+local.whl"] = wheel()
            index.page(files.url("/uv-1+local.whl"))
            bootstrap.install_uv(tmp_path / "a", index.url("/simple", LOGIN))
            index.page("/moved/uv-1+local.whl")
            index.redirects["/moved/uv-1+local.whl"] = files.url("/uv-1+local.whl")
            bootstrap.install_uv(tmp_path / "b", index.url("/simple", LOGIN))
            assert files.asked == [("/uv-1+local.whl", None)] * 2

    def test_a_redirect_on_the_same_host_keeps_the_password(self, filename, tmp_path):
        """Relative links count from where the page really was."""
        with serve(PLAIN_LOGIN) as index:
            index.page("uv-1+local.whl")
            index.bodies["/mirror/uv/"] = index.bodies.pop("/simple/uv/")
            index.redirects["/simple/uv/"] = "/mirror/uv/"
            index.bodies["/mirror/uv/uv-1+local.whl"] = wheel()
            bootstrap.install_uv(tmp_path / "uv", index.url("/simple", LOGIN))
            assert [login for _, login in index.asked] == [PLAIN_LOGIN] * 3

    def test_a_wrong_hash(self, filename, tmp_path):
        """Is refused, and nothing is installed."""
        with serve() as index:
            index.page(filename)
            index.bodies[f"/simple/uv/{filename}"] = wheel(b"#!/bin/sh\necho evil\n")
            with pytest.raises(ValueError, match=r"has SHA-256 \w{64}; expected \w{64}"):
                bootstrap.install_uv(tmp_path / "uv", index.url("/simple"))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("links", [[], ["uv-1+local.whl.metadata"], ["xuv-1+local.whl"], ["uv-1+local.whl/"]])
    def test_no_such_file(self, filename, tmp_path, links):
        """An index without this version says so; a name that only looks alike is none."""
        with serve() as index:
            index.page(*links)
            with pytest.raises(ValueError, match=r"the index has no uv-1\+local\.whl"):
                bootstrap.install_uv(tmp_path / "uv", index.url("/simple"))

    def test_a_wrong_password_and_a_wrong_address(self, filename, tmp_path):
        """Errors of the connection."""
        with serve("a:b") as index:
            with pytest.raises(OSError, match="401"):
                bootstrap.install_uv(tmp_path / "uv", index.url("/simple", "a:c"))
            with pytest.raises(OSError, match="404"):
                bootstrap.install_uv(tmp_path / "uv", index.url("/nowhere", "a:b"))
        with pytest.raises(OSError, match="refused"):
            bootstrap.install_uv(tmp_path / "uv", index.url("/simple"))

    def test_the_right_version_is_kept(self, filename, tmp_path):
        """No index is asked."""
        (tmp_path / "uv").write_bytes(UV)
        (tmp_path / "uv").chmod(0o755)
        bootstrap.install_uv(tmp_path / "uv", "http://127.0.0.1:1/simple")

    @pytest.mark.parametrize(
        "there", [b"", UV[:5], b"\x7fELF garbage", UV.replace(b"uv 0", b"uv 9"), b"#!/nonexistent\n"]
    )
    @pytest.mark.parametrize("mode", [0o755, 0o644])
    def test_another_version_or_half_a_file_is_replaced(self, filename, tmp_path, there, mode):
        """What an interrupted call left behind does not stop the next one."""
        (tmp_path / "uv").write_bytes(there)
        (tmp_path / "uv").chmod(mode)
        with serve() as index:
            index.page(filename)
            index.bodies[f"/simple/uv/{filename}"] = wheel()
            bootstrap.install_uv(tmp_path / "uv", index.url("/simple"))
        assert (tmp_path / "uv").read_bytes() == UV


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://host/simple", "https://host/simple"),
        ("https://user:secret@host/simple", "https://host/simple"),
        ("https://user:p@ss@host:8080/simple", "https://host:8080/simple"),
        ("https://token@host", "https://host"),
        (
            "unknown url type: 'corp=https://u:s@h/x' and http://a:b@c/",
            "unknown url type: 'corp=https://h/x' and http://c/",
        ),
    ],
)
def test_no_password_is_shown(text, shown):
    """Wherever a URL stands in a message."""
    assert bootstrap.without_password(text) == shown


def test_certificates_that_are_not_there(monkeypatch):
    """A variable that names no file is passed over."""
    monkeypatch.setenv("PIP_CERT", "/nonexistent.pem")
    assert bootstrap.certificates().get_ca_certs() is not None


class TestMain:
    """The whole program, as `make setup` calls it."""

    @pytest.fixture
    def run(self, bare, monkeypatch):
        """Runs it with these arguments; says what it answered."""

        def call(*arguments):
            monkeypatch.setattr(sys, "argv", ["bootstrap.py", *map(str, arguments)])
            return bootstrap.main()

        return call

    def test_a_missing_lock_file(self, run, tmp_path, capsys):
        """Is said in one line, and nothing is made."""
        assert run("--lock", tmp_path / "no.txt", "--venv", tmp_path / "v") == 1
        assert "there is no lock file" in capsys.readouterr().err
        assert not (tmp_path / "v").exists()

    @pytest.mark.parametrize("content", ["file in a folder", "file"])
    def test_a_folder_that_is_something_else_is_not_cleared(self, run, tmp_path, capsys, content):
        """Nobody loses a project to a mistyped option."""
        target = tmp_path / "project"
        precious = target / "precious.txt" if content == "file in a folder" else target
        precious.parent.mkdir(exist_ok=True)
        precious.write_text("work")
        (tmp_path / "lock.txt").write_text("")
        assert run("--lock", tmp_path / "lock.txt", "--venv", target) == 1
        assert "no virtual environment" in capsys.readouterr().err
        assert precious.read_text() == "work"

    def test_an_index_that_does_not_answer(self, run, tmp_path, capsys, monkeypatch):
        """Is named without its password, and leaves no stamp."""
        monkeypatch.setenv("UV_DEFAULT_INDEX", "http://me:secret@127.0.0.1:1/simple")
        (tmp_path / "lock.txt").write_text("")
        assert run("--lock", tmp_path / "lock.txt", "--venv", tmp_path / "v") == 1
        shown = capsys.readouterr().err
        assert "could not be fetched from http://127.0.0.1:1/simple" in shown
        assert "secret" not in shown
        assert not (tmp_path / "v" / ".installed").exists()

    @pytest.mark.parametrize(
        ("name", "value", "words"),
        [
            ("OLDEST", (4, 0), "Python 4.0 or newer is needed"),
            ("UV_WHEELS", {"m68k": ("", "")}, "Linux on m68k is needed"),
        ],
    )
    def test_a_machine_that_is_not_supported(self, run, tmp_path, capsys, monkeypatch, name, value, words):
        """Is told what is needed and what it is."""
        monkeypatch.setattr(bootstrap, name, value)
        assert run("--venv", tmp_path / "v") == 1
        assert words in capsys.readouterr().err

    def test_from_nothing_to_a_working_command(self, tmp_path):
        """A small lock from the configured index; again does nothing, and a broken environment is made anew."""
        names = ["editables", "hatchling", "idna", "packaging", "pathspec", "pluggy", "trove-classifiers"]
        whole = (ROOT / "images" / "lock" / "dev.txt").read_text()
        entries = re.findall(rf"(?m)^(?:{'|'.join(names)})==.*\n(?:    --hash=.*\n)+", whole)
        assert len(entries) == len(names)
        lock = tmp_path / "lock.txt"
        lock.write_text("".join(entries))
        venv = tmp_path / "venv"
        python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()  # not a virtual environment's
        command = [python, bootstrap.__file__, "--lock", lock, "--venv", venv]
        first = subprocess.run(command, check=False, capture_output=True, text=True)
        if first.returncode and "could not be fetched" in first.stderr:
            missing(f"no package index answers: {first.stderr[-200:]}")
        assert first.returncode == 0, first.stderr
        installed = subprocess.run(
            [venv / "bin" / "python", "-c", "import idna, hatchling; print(idna.__version__)"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert f"\nidna=={installed.stdout.strip()} " in lock.read_text()
        assert (venv / "bin" / "grader").is_file()

        written = (venv / ".installed").stat().st_mtime_ns
        again = subprocess.run(command, check=True, capture_output=True, text=True)
        assert (again.stdout, again.stderr) == ("", "")
        assert (venv / ".installed").stat().st_mtime_ns == written

        assert bootstrap.fits_this_python(venv)
        (venv / "bin" / "python").unlink()
        (venv / "bin" / "python").symlink_to("/nonexistent")
        assert not bootstrap.fits_this_python(venv)
        subprocess.run(command, check=True, capture_output=True)
        subprocess.run([venv / "bin" / "python", "-c", "import idna"], check=True)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (f"home = /usr/bin\nversion = {platform.python_version()}\n", True),
        (f"version={sys.version_info[0]}.{sys.version_info[1]}.99\n", True),
        ("version = 3.10.1\n", False),
        ("version = 3.110\n", False),
        ("home = /usr\n", False),
    ],
)
def test_an_environment_of_another_python_is_made_anew(tmp_path, text, fits):
    """After an upgrade of the system's Python its libraries are in the wrong folder."""
    (tmp_path / "bin").mkdir()
    os.symlink(sys.executable, tmp_path / "bin" / "python")
    (tmp_path / "pyvenv.cfg").write_text(text)
    assert bootstrap.fits_this_python(tmp_path) is fits
