"""The page in front of real stores, and a real Chromium to look at it."""

from contextlib import nullcontext
from dataclasses import dataclass

import pytest

from grader_service.store.engine import Store
from grader_service.web.queries import SubmissionFilter, submissions, verdicts_of
from tests.conftest import DATABASES, fresh_database
from tests.regrade.conftest import store_url  # noqa: F401 - a fixture
from tests.report.window import Window, windows
from tests.store.factories import migrated
from tests.web.client import BOTH, OPERATOR_ONLY, OPERATOR_TOKEN, READ_ONLY, Client, served
from tests.web.openid_double import openid_double
from tests.web.openid_provider import a_provider, openid_provider
from tests.web.stock import REVIEWED, stock


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A state folder of a module's own."""
    return tmp_path_factory.mktemp("web")


@pytest.fixture
def quick_store(tmp_path):
    """An empty store where the database does not matter."""
    with migrated(f"sqlite:///{tmp_path}/grader.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def openid(tmp_path_factory):
    """The issuer of a real OpenID provider."""
    with openid_provider(tmp_path_factory.mktemp("openid")) as issuer:
        yield issuer


@pytest.fixture(scope="module")
def provider_double():
    """One for all tests."""
    with openid_double() as made:
        yield made


@pytest.fixture
def double(provider_double):
    """A provider that says what the test wants."""
    provider_double.forget()
    return provider_double


@pytest.fixture(scope="module")
def page_store(folder):
    """Of the page that asks a provider."""
    with migrated(f"sqlite:///{folder}/grader.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def page(page_store, provider_double):
    """Where nobody gets in but through the provider."""
    with served(page_store, READ_ONLY, provider=a_provider(provider_double.issuer)) as at:
        yield at


@dataclass
class Place:
    """A stocked store with the page in front of it; no test changes it."""

    store: Store
    port: int
    closed_port: int
    """Where reading needs a token."""
    seen: dict

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
            "several": "/submissions/autumn",
            "superseded": f"/submissions/{self.rejected()}",
            "verdict": f"/verdicts/{verdict}",
            "learner's": f"/verdicts/{verdict}?for=learner",
            "reviews": "/reviews",
            "review": f"/reviews/{submission}/{REVIEWED}",
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
        return next(line.verdict_id for line in verdicts_of(self.store, submission) if line.current)

    def rejected(self):
        """A submission with a superseded verdict."""
        return submissions(self.store, SubmissionFilter(status="rejected"))[0].submission_id


@pytest.fixture(scope="module", params=DATABASES)
def place(request, folder):
    """The stocked page on each database in turn."""
    database = nullcontext(f"sqlite:///{folder}/grader.db")
    if request.param == "postgres":
        database = fresh_database(request.getfixturevalue("postgres"))
    with database as url, migrated(url, pool_size=5) as opened:
        seen = stock(opened, folder)
        with served(opened, OPERATOR_ONLY) as port, served(opened, BOTH) as closed_port:
            yield Place(opened, port, closed_port, seen)


@pytest.fixture
def visitor(place):
    """Somebody who may read."""
    return Client(place.port)


@pytest.fixture
def port(place):
    """Of the stocked page; a module may serve another."""
    return place.port


@pytest.fixture
def operator(port):
    """Somebody who signed in with the operator token."""
    client = Client(port)
    assert client.sign_in(OPERATOR_TOKEN).status == 303
    return client


class Visit(Window):
    """One open window on a served page."""

    def __init__(self, page, port):
        super().__init__(page)
        self.base = f"http://127.0.0.1:{port}"

    def go(self, path):
        answer = self.page.goto(self.base + path)
        assert answer is not None
        return answer.status

    def sign_in(self, token=OPERATOR_TOKEN, name="Zoë"):
        self.go("/login")
        self.page.get_by_label("Your name").fill(name)
        self.page.get_by_label("Token").fill(token)
        self.press("Sign in")
        return self

    def press(self, name, role="button"):
        """Follows a button or a link to the next page."""
        with self.page.expect_navigation():
            self.page.get_by_role(role, name=name).click()


@pytest.fixture
def visit(chromium):
    """Opens windows of any size, scheme and port."""
    with windows(chromium) as opened:
        yield lambda port, *size_and_scheme, **options: Visit(opened(*size_and_scheme, **options), port)
