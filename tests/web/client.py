"""A plain HTTP client that sends exactly what a test says, and a served page."""

import http.client
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from grader_service.store.engine import Store
from grader_service.web.access import Tokens
from grader_service.web.app import make_app
from grader_service.web.hosts import trusted_proxies
from grader_service.web.serving import listen, make_server, make_site
from tests.services.roles import as_role
from tests.waiting import wait_for

VIEWER_TOKEN = "viewer-token-of-the-tests"  # noqa: S105
OPERATOR_TOKEN = "operator-token-of-the-tests"  # noqa: S105
BOTH = Tokens(VIEWER_TOKEN, OPERATOR_TOKEN)
OPERATOR_ONLY = Tokens(None, OPERATOR_TOKEN)
READ_ONLY = Tokens()
FORM = "application/x-www-form-urlencoded"


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    @property
    def csrf(self):
        """Of the first form."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.text)
        return found[1] if found else ""


@dataclass
class Client:
    """One visitor with one cookie."""

    port: int
    cookie: str = ""
    headers: dict = field(default_factory=dict)

    def ask(self, method, path, body=None, **headers):
        """One request; names of headers have `_` for `-`, and None leaves one out."""
        sent = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie, **self.headers}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            if body is not None and "Content-Length" not in sent:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            got = Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()
        if "set-cookie" in got.headers:
            self.cookie = got.headers["set-cookie"].partition(";")[0]
        return got

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, fields, **headers):
        """A form as a browser of this page would send it."""
        origin = {"Origin": f"http://127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin", "Content-Type": FORM}
        return self.ask("POST", path, urlencode(fields, doseq=True).encode(), **(origin | headers))

    def sign_in(self, token, name="Zoë"):
        csrf = self.get("/login").csrf
        return self.post("/login", {"csrf": csrf, "token": token, "name": name})

    def act(self, path, **fields):
        """A form of a signed-in visitor, with the token of the session."""
        return self.post(path, {"csrf": self.get("/").csrf, **fields})


@contextmanager
def served(store, tokens=OPERATOR_ONLY, proxies=(), **site_values):
    """The page on a free port, behind proxies of these networks, in its roles of the database; gives the port."""
    url = store.engine.url.render_as_string(hide_password=False)
    stores = [store if store.is_sqlite else Store(as_role(url, role)) for role in ("web", "operator")]
    site = replace(make_site(stores[0], tokens, "127.0.0.1", acting=stores[1]), **site_values)
    listening = listen("127.0.0.1", 0)
    server = make_server(make_app(site), trusted_proxies(" ".join(proxies)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        wait_for(lambda: server.started, 5, every_s=0.01)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
        for opened in stores:
            if opened is not store:
                opened.close()
        assert not thread.is_alive()
