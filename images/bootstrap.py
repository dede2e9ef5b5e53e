"""Sets up `.venv` on a bare machine: Python 3.11 or newer and nothing else, not even pip or ensurepip.

    python3 images/bootstrap.py [--lock images/lock/dev.txt] [--venv .venv]

Fetches one wheel, uv, from the configured package index, checks its hash, and lets it install the lock file, in which
every package is pinned with hashes. The index is that of UV_DEFAULT_INDEX, UV_INDEX_URL, PIP_INDEX_URL or pip's
configuration files, else PyPI. A second call with the same lock does nothing.
"""

import argparse
import base64
import configparser
import hashlib
import html.parser
import io
import os
import platform
import re
import shutil
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import venv
import zipfile
from pathlib import Path
from typing import Any

UV_VERSION = "0.13.9"
UV_WHEELS = {
    "x86_64": (
        f"uv-{UV_VERSION}-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19",
    ),
    "aarch64": (
        f"uv-{UV_VERSION}-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
        "5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe",
    ),
}
PYPI = "https://pypi.org/simple"
OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
GLOBAL_PIP_CONFIG = Path("/etc/pip.conf")
_SYSTEM_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


class Links(html.parser.HTMLParser):
    """Collects the links of an index page."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps `href` of every anchor."""
        if tag == "a":
            self.urls += [value for name, value in attrs if name == "href" and value]


def main() -> int:
    """Creates or updates the environment; returns the exit code."""
    parser = argparse.ArgumentParser(description="Sets up the virtual environment.")
    parser.add_argument("--lock", type=Path, default=ROOT / "images" / "lock" / "dev.txt")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    options = parser.parse_args()
    if sys.version_info < OLDEST:
        return fail(f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed; this is {platform.python_version()}.")
    if sys.platform != "linux" or platform.machine() not in UV_WHEELS:
        return fail(f"Linux on {' or '.join(UV_WHEELS)} is needed; this is {sys.platform} on {platform.machine()}.")
    if not options.lock.is_file():
        return fail(f"there is no lock file {options.lock}")
    if is_something_else(options.venv):
        return fail(f"{options.venv} is there and is no virtual environment; remove it or name another folder.")
    stamp = options.venv / ".installed"
    state = f"{digest(options.lock)} {digest(ROOT / 'pyproject.toml')} {platform.python_version()}"
    usable = fits_this_python(options.venv)
    if usable and stamp.exists() and stamp.read_text() == state:
        return 0
    if shutil.disk_usage(ROOT).free < 12 << 30 and not stamp.exists():
        say("warning: less than 12 GiB of disk are free; torch and its libraries alone take 6")
    index = index_url()
    say(f"creating {options.venv} with Python {platform.python_version()}")
    stamp.unlink(missing_ok=True)  # until everything is installed again, nothing is
    venv.EnvBuilder(with_pip=False, symlinks=True, clear=not usable).create(options.venv)
    uv = options.venv / "bin" / "uv"
    try:
        install_uv(uv, index)
    except (OSError, ValueError) as error:
        return fail(f"uv could not be fetched from {without_password(index)}: {without_password(str(error))}")
    say("installing the locked packages (about 6 GiB the first time)")
    environment = {
        **os.environ,
        "UV_SYSTEM_CERTS": "1",
        "UV_DEFAULT_INDEX": index,
        "UV_PYTHON_DOWNLOADS": "never",
    }
    python = str(options.venv / "bin" / "python")
    for arguments in (
        # Compiled once: where Python may not write bytecode, every command would compile all that it imports.
        ["sync", "--compile-bytecode", "--require-hashes", str(options.lock)],
        ["install", "--no-deps", "--no-build-isolation", "-e", str(ROOT)],
    ):
        command = [str(uv), "pip", *arguments, "--quiet", "--python", python]
        if subprocess.run(command, env=environment, check=False).returncode != 0:
            return fail("the packages could not be installed; see the message above")
    stamp.write_text(state)
    return 0


def is_something_else(folder: Path) -> bool:
    """Whether a folder holds what is no virtual environment, and must not be cleared for one."""
    return folder.exists() and not (folder / "pyvenv.cfg").exists() and (not folder.is_dir() or any(folder.iterdir()))


def fits_this_python(folder: Path) -> bool:
    """Whether a virtual environment works and was made by a Python of this one's minor version."""
    if not (folder / "bin" / "python").exists():
        return False
    found = re.search(r"^version *= *(\d+)\.(\d+)", (folder / "pyvenv.cfg").read_text(), re.MULTILINE)
    return found is not None and (int(found[1]), int(found[2])) == sys.version_info[:2]


def install_uv(target: Path, index: str) -> None:
    """Puts the pinned uv program at `target`.

    Raises:
        ValueError: the index has no such file, or its bytes have another hash.
        OSError: the index cannot be reached.
    """
    filename, expected = UV_WHEELS[platform.machine()]
    if f"uv {UV_VERSION} " in version_of(target):
        return
    page, page_url = fetch(f"{index.rstrip('/')}/uv/")
    links = Links()
    links.feed(page.decode())
    urls = [urllib.parse.urljoin(page_url, link).partition("#")[0] for link in links.urls]
    url = next((url for url in urls if filename_in(url) == filename), None)
    if url is None:
        raise ValueError(f"the index has no {filename}")
    wheel, _ = fetch(with_credentials(url, index))
    found = hashlib.sha256(wheel).hexdigest()
    if found != expected:
        raise ValueError(f"{filename} has SHA-256 {found}; expected {expected}")
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        program = archive.read(f"uv-{UV_VERSION}.data/scripts/uv")
    # In one step, so that no later call finds half a program.
    fresh = target.with_name("uv.new")
    fresh.write_bytes(program)
    fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    fresh.replace(target)


def version_of(program: Path) -> str:
    """What a program says of its version, on one line; empty when it is not there or does not run."""
    try:
        done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.replace("\n", " ")


def index_url() -> str:
    """The package index that this machine is configured for."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if os.environ.get(name):
            return os.environ[name]
    home = Path(os.environ.get("HOME") or "/nonexistent")
    config_home = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [GLOBAL_PIP_CONFIG, home / ".pip" / "pip.conf", config_home / "pip" / "pip.conf"]
    if os.environ.get("PIP_CONFIG_FILE"):
        files.append(Path(os.environ["PIP_CONFIG_FILE"]))
    found = PYPI
    for path in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, ValueError):
            continue
        for name in ("index_url", "index-url"):  # pip takes both
            found = parser.get("global", name, fallback=found)
    return found


def filename_in(url: str) -> str:
    """The last part of a URL's path."""
    return urllib.parse.unquote(urllib.parse.urlsplit(url).path).rpartition("/")[2]


def with_credentials(url: str, index: str) -> str:
    """A URL with the index's user and password, if it is on the index's own host."""
    parts, known = urllib.parse.urlsplit(url), urllib.parse.urlsplit(index)
    if (parts.scheme, parts.netloc) == (known.scheme, known.netloc.rpartition("@")[2]):
        return parts._replace(netloc=known.netloc).geturl()
    return url


class CredentialsStay(urllib.request.HTTPRedirectHandler):
    """Follows redirects, and tells no other host the password of this one."""

    def redirect_request(self, *args: Any) -> urllib.request.Request | None:
        """See `HTTPRedirectHandler`; the first argument is the request, the last the new URL."""
        redirected = super().redirect_request(*args)
        if redirected is not None and (redirected.type, redirected.host) != (args[0].type, args[0].host):
            redirected.remove_header("Authorization")
        return redirected


def fetch(url: str) -> tuple[bytes, str]:
    """The body at a URL, and the URL that it came from in the end.

    Credentials in the URL are sent; the system's certificates and proxies are used.
    """
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(parts._replace(netloc=host).geturl(), headers={"Accept": "text/html, */*"})
    if parts.username:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=certificates()), CredentialsStay())
    with opener.open(request, timeout=120) as response:
        body: bytes = response.read()
        return body, with_credentials(response.geturl(), url)


def certificates() -> ssl.SSLContext:
    """The default trust, plus what the environment and the system name."""
    context = ssl.create_default_context()
    named = [os.environ.get(name) for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")]
    for path in (*named, *_SYSTEM_CERTIFICATES):
        if path and os.path.isfile(path):
            context.load_verify_locations(path)
    return context


def digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def without_password(text: str) -> str:
    """A text with URLs, as it can be shown."""
    return re.sub(r"//[^/\s]*@", "//", text)


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"bootstrap: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> int:
    """One line, and the exit code of a failure."""
    say(text)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
