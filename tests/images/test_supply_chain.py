"""What the project is made of: dependencies that are used, licences that are allowed, pins, SBOMs, and the audit."""

import ast
import http.server
import json
import re
import shutil
import subprocess
import threading
import time
import tomllib
from contextlib import contextmanager

import pytest

from images import audit, pins, sbom
from images.licences import refusal
from tests.conftest import missing
from tests.levels.parts import ROOT
from tests.services.kept_port import kept_port

IMPORTED_AS = {"nvidia-ml-py": "pynvml", "pillow": "PIL", "pyyaml": "yaml", "ipython": "IPython"}
"""Import names that are not the distribution's."""
NOT_IMPORTED = {"psycopg": "SQLAlchemy's driver, named in the database's address"}
VULNERABLE = "jinja2"


def test_each_direct_dependency_is_imported():
    """Or stands in the table of those that something else loads."""
    used = set()
    for package in ("grader_service", "sandbox", "checks", "images"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Import):
                    used |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    used.add(node.module.partition(".")[0])
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.match(r"[\w.-]+", line)[0] for line in declared}
    assert {name for name in names if IMPORTED_AS.get(name, name.replace("-", "_")) not in used} == set(NOT_IMPORTED)


@pytest.mark.parametrize("lock", audit.LOCKS)
def test_each_licence_is_allowed(lock):
    """A new package with an unknown or forbidden licence fails here."""
    found = audit.licences(audit.LOCKS[lock])
    assert len(found) > 20
    assert {name: why for name, said in found.items() if (why := refusal(name, said))} == {}


@pytest.mark.parametrize("said", ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "MIT OR GPL-2.0-only", None])
def test_another_licence_is_refused(said):
    """In every part of an expression."""
    assert refusal("some-package", said)


def test_files_name_the_pinned_images():
    """Compose and the manifests say what the lock says."""
    texts = {name: (ROOT / name).read_text() for name in pins.USERS}
    assert [name for name, text in texts.items() if pins._with_references(text, pins.read_pins()) != text] == []
    shown = (ROOT / "compose.yaml").read_text()
    assert all(pins.read_pins()[name].reference in shown for name in ("redis", "postgres"))


def test_a_digest_of_another_form_is_refused(tmp_path):
    """A cut one, for example."""
    lock = tmp_path / "registry.json"
    lock.write_text('{"redis": {"name": "redis", "tag": "7", "digest": "sha256:12", "resolved": null}}')
    with pytest.raises(ValueError, match="redis needs a tag"):
        pins.read_pins(lock)


@pytest.fixture
def registry(tmp_path):
    """A registry of Debian's package, empty, on a port of its own; its host and port."""
    program = shutil.which("docker-registry")
    if program is None:
        missing("docker-registry is not installed (apt-get install docker-registry)")
    with kept_port() as port:
        config = tmp_path / "registry.yml"
        config.write_text(
            f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/data}}}}\n"
            f"http: {{addr: 127.0.0.1:{port}}}\n"
        )
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log)
        yield f"127.0.0.1:{port}"
        process.terminate()
        process.wait(10)


def test_tags_are_resolved_by_a_registry(engine, registry, tmp_path):
    """What it has is pinned and written; what it has not is told, and stays."""
    image = engine.api.import_image_from_data(b"\0" * 10240, repository=f"{registry}/redis", tag="7.9.1")
    image_id = json.loads(image.splitlines()[-1])["status"]
    try:
        deadline = time.monotonic() + 20
        while "digest" not in (said := engine.images.push(f"{registry}/redis", tag="7.9.1")):
            assert time.monotonic() < deadline, said
        digest = re.search(r"sha256:[0-9a-f]{64}", said[said.index('"Digest"') if '"Digest"' in said else 0 :])[0]
    finally:
        engine.images.remove(image_id, force=True)
    asked = {
        "redis": pins.Pin(f"{registry}/redis", "7.9.1", None, None),
        "postgres": pins.Pin(f"{registry}/postgres", "16.1", "sha256:" + "1" * 64, None),
    }
    found, problems = pins.resolve(engine, asked, "2026-01-02")
    assert found == {
        "redis": pins.Pin(f"{registry}/redis", "7.9.1", digest, "2026-01-02"),
        "postgres": asked["postgres"],
    }
    assert list(problems) == ["postgres"]

    for name in pins.USERS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("image: redis:7.1.1-bookworm # redis://redis:6379/0\n")
    shown = {"redis": pins.Pin("redis", "7.9.1", digest, "2026-01-02")}
    assert pins.write(shown, tmp_path / "lock.json", tmp_path) == list(pins.USERS)
    assert (tmp_path / "compose.yaml").read_text() == f"image: redis:7.9.1@{digest} # redis://redis:6379/0\n"
    assert pins.read_pins(tmp_path / "lock.json") == shown


def test_the_sbom_of_an_image_is_read_without_running_it(engine, tmp_path):
    """And an image without one is told from none."""
    sbom.write_sbom(tmp_path, "x", "")
    archive = subprocess.run(["tar", "-C", str(tmp_path), "-c", "usr"], check=True, capture_output=True).stdout
    made = [engine.api.import_image_from_data(data, repository="sbom-test", tag=tag) for data, tag in
            ((archive, "with"), (b"\0" * 10240, "without"))]  # fmt: skip
    assert len(made) == 2
    try:
        assert sbom.read_sbom(engine, "sbom-test:with") == (tmp_path / sbom.SBOM).read_text()
        with pytest.raises(Exception, match="build it anew"):
            sbom.read_sbom(engine, "sbom-test:without")
        with pytest.raises(Exception, match="no image sbom-test:absent"):
            sbom.read_sbom(engine, "sbom-test:absent")
    finally:
        for tag in ("with", "without"):
            engine.images.remove(f"sbom-test:{tag}", force=True)


def test_an_sbom_names_packages_with_versions_licences_and_hashes(tmp_path):
    """With the same bytes each time."""
    status = (
        "Package: bash\nStatus: install ok installed\nArchitecture: amd64\nVersion: 5.2+b8\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 1\n"
    )
    folder = tmp_path / "site" / "Some_Thing-1.2.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.4\nName: Some_Thing\nVersion: 1.2\nLicense-Expression: MIT\n")
    lock = "some-thing==1.2 \\\n    --hash=sha256:" + "a" * 64 + "\n    # via x\n"
    texts = []
    for name in ("one", "two"):
        sbom.write_sbom(tmp_path / name, "grader-x", status, [tmp_path / "site"], lock)
        texts.append((tmp_path / name / sbom.SBOM).read_text())
    assert texts[0] == texts[1]
    bash, thing = json.loads(texts[0])["components"]
    assert bash["purl"] == "pkg:deb/debian/bash@5.2%2Bb8?arch=amd64"
    assert (thing["purl"], thing["licenses"]) == ("pkg:pypi/some-thing@1.2", [{"license": {"id": "MIT"}}])
    assert thing["externalReferences"][0]["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]


@contextmanager
def database():
    """An OSV database on this host, in which one package has a vulnerability."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name, version = asked["package"]["name"], asked["version"]
            affected = [{"package": asked["package"], "ranges": [
                {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]}], "versions": [version]},
            ]  # fmt: skip
            vulnerability = {"id": "PYSEC-2026-1", "summary": "s", "details": "d", "affected": affected, "aliases": [],
                    "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z"}  # fmt: skip
            body = json.dumps({"vulns": [vulnerability]} if name == VULNERABLE else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            """Stays quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()


@pytest.mark.integration
def test_a_known_vulnerability_is_found_and_reported(tmp_path, monkeypatch, capsys):
    """With the version that mends it."""
    monkeypatch.setattr(audit, "LOCKS", {"service": audit.LOCKS["service"]})
    with database() as url:
        assert audit.main(["--osv-url", url, "--report", str(tmp_path / "page.md")]) == 1
    assert f"service: {VULNERABLE} " in capsys.readouterr().out
    assert "PYSEC-2026-1, fixed in 99.1" in (tmp_path / "page.md").read_text()


@pytest.mark.integration
def test_a_database_that_does_not_answer_is_no_clean_result(tmp_path, capsys):
    """Nothing is written then."""
    assert audit.main(["--osv-url", "http://127.0.0.1:9/v1/query", "--report", str(tmp_path / "page.md")]) == 3
    assert "not checked" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()


def test_the_page_says_why_these_versions():
    """It names those that are pinned; `make audit` writes the text from `images/lab/versions.md`."""
    text = audit.VERSIONS.read_text()
    assert text in audit.REPORT.read_text()
    for name in ("torch", "torchvision", "nvidia-dali-cuda120"):
        assert f"{name} {audit.pinned(audit.LOCKS['lab'])[name]}" in text
