"""A real OpenID provider, panva's certified `oidc-provider`, in a Node.js process of its own."""

import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import requests

from grader_service.web.claims import Rules
from grader_service.web.oidc import Client as ClientOf
from grader_service.web.oidc import Provider
from tests.conftest import missing
from tests.services.kept_port import kept_port

SOURCES = Path(__file__).parent / "openid"
CLIENT_ID = "grader"
CLIENT_SECRET = "secret-of-the-tests"  # noqa: S105
RULES = Rules("preferred_username", "groups", frozenset({"grader-operators"}), frozenset({"grader-viewers"}))


def a_provider(issuer, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, rules=RULES, **values):
    """What the page is given of a provider."""
    return Provider(ClientOf(issuer, client_id, client_secret, "openid profile email"), rules, **values)


@contextmanager
def openid_provider(folder):
    """Its issuer; on `localhost`, so that a page on 127.0.0.1 is another site to browsers."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing("Node.js and npm are not installed (apt-get install nodejs npm)")
    for path in SOURCES.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(folder / "cache")],
        cwd=folder, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    with kept_port() as port, (folder / "log").open("wb") as log:
        command = ["node", "provider.mjs", str(port), CLIENT_ID, CLIENT_SECRET]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as process:
            try:
                assert process.stdout.readline() == "ready\n", (folder / "log").read_text()
                yield f"http://localhost:{port}"
            finally:
                process.kill()


def signed_in_there(address, login):
    """Where the provider sends a browser in the end that was sent to this address and signs in as this person."""
    with requests.Session() as browser:
        answer = browser.get(address, allow_redirects=False, timeout=30)
        while True:
            if answer.status_code == 200:
                action = re.search(r'action="([^"]+)"', answer.text)[1]
                prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)[1]
                fields = {"prompt": prompt, "login": login, "password": "any"}
                answer = browser.post(action, fields, allow_redirects=False, timeout=30)
                continue
            assert answer.is_redirect, answer.text
            there = urljoin(answer.url, answer.headers["location"])
            if "/login/oidc/callback" in there:
                return there
            answer = browser.get(there, allow_redirects=False, timeout=30)
