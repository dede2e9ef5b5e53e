"""The page in front of real stores, and a real Chromium to look at it."""

import shutil
import tempfile
import uuid
from pathlib import Path

import pytest

from grader_service.store.engine import Store
from tests.conftest import DATABASES
from tests.web.client import BOTH, OPERATOR_ONLY, OPERATOR_TOKEN, Client, served
from tests.web.stock import stock


@pytest.fixture(scope="module")
def folder():
    """A state folder of a module's own."""
    path = Path(tempfile.mkdtemp(prefix="grader-web-", dir="/var/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def _fresh(request, folder):
    """The URL of an empty, migrated database, and what removes it."""
    name = f"web_{uuid.uuid4().hex[:8]}"
    if request.param == "sqlite":
        return f"sqlite:///{folder}/{name}.db", lambda: None
    url, admin = request.getfixturevalue("postgres")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"create database {name} template template_grader")

    def drop():
        with admin.connect() as connection:
            connection.exec_driver_sql(f"drop database {name} with (force)")

    return url.format(name=name), drop


@pytest.fixture(params=DATABASES)
def store(request, folder):
    """An empty store."""
    url, drop = _fresh(request, folder)
    opened = Store(url, pool_size=5)
    opened.migrate()
    yield opened
    opened.close()
    drop()


@pytest.fixture
def quick_store(tmp_path):
    """An empty store where the database does not matter."""
    opened = Store(f"sqlite:///{tmp_path}/grader.db")
    opened.migrate()
    yield opened
    opened.close()


class Place:
    """A stocked store with the page in front of it; no test changes it."""

    def __init__(self, store, port, closed_port, seen):
        self.store = store
        self.port = port
        self.closed_port = closed_port
        """Where reading needs a token."""
        self.seen = seen

    def pages(self):
        """Address of every kind of page."""
        submission = self.seen["ids"][0]
        verdict = self.verdict(submission)
        finished, running = self.seen["finished"], self.seen["running"]
        return {
            "overview": "/",
            "submissions": "/submissions",
            "searched": "/submissions?q=learner&status=failed&cohort=autumn",
            "submission": f"/submissions/{submission}",
            "superseded": f"/submissions/{self.rejected()}",
            "verdict": f"/verdicts/{verdict}",
            "cohorts": "/cohorts",
            "batches": "/batches",
            "finished": f"/batches/{finished}",
            "running": f"/batches/{running}",
            "planned": f"/batches/{self.seen['planned']}",
            "diff": f"/batches/{finished}/diff",
            "changes": f"/batches/{finished}/changes?kind=newly_failing",
            "plan": "/batches/new?cohorts=autumn",
            "apply": f"/batches/{finished}/do/apply",
            "cancel": f"/batches/{running}/do/cancel",
            "pause": f"/batches/{running}/do/pause",
            "escalate": f"/batches/{finished}/do/escalate",
            "stopped": f"/batches/{self.seen['stopped']}",
            "stopped changes": f"/batches/{self.seen['stopped']}/changes",
            "revert": f"/batches/{self.seen['applied']}/do/revert",
            "audit": "/audit",
            "login": "/login",
        }

    def verdict(self, submission):
        from grader_service.web.queries import verdicts_of

        return next(line.verdict_id for line in verdicts_of(self.store, submission) if line.current)

    def rejected(self):
        """A submission with a superseded verdict."""
        from grader_service.web.queries import SubmissionFilter, submissions

        return submissions(self.store, SubmissionFilter(status="rejected"))[0].submission_id


@pytest.fixture(scope="module", params=DATABASES)
def place(request, folder):
    """The stocked page on each database in turn."""
    url, drop = _fresh(request, folder)
    opened = Store(url, pool_size=5)
    opened.migrate()
    seen = stock(opened, folder)
    with served(opened, OPERATOR_ONLY) as port, served(opened, BOTH) as closed_port:
        yield Place(opened, port, closed_port, seen)
    opened.close()
    drop()


@pytest.fixture
def visitor(place):
    """Somebody who may read."""
    return Client(place.port)


@pytest.fixture
def operator(place):
    """Somebody who signed in with the operator token."""
    client = Client(place.port)
    assert client.sign_in(OPERATOR_TOKEN).status == 303
    return client


class Visit:
    """One open window, with what its console said."""

    def __init__(self, context, port):
        self.page = context.new_page()
        self.base = f"http://127.0.0.1:{port}"
        self.console = []
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda problem: self.console.append(str(problem)))

    def go(self, path):
        answer = self.page.goto(self.base + path)
        assert answer is not None
        return answer.status

    def sign_in(self, token=OPERATOR_TOKEN, name="Zoë"):
        self.go("/login")
        self.page.get_by_label("Your name").fill(name)
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_load_state()
        return self


@pytest.fixture
def visit(chromium):
    """Opens windows of any size, scheme and port."""
    contexts = []

    def run(port, width=1280, scheme="light", **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        context.set_default_timeout(20_000)
        contexts.append(context)
        return Visit(context, port)

    yield run
    for context in contexts:
        context.close()
