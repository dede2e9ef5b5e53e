"""An API server in memory, over real HTTP, that can have a bad day.

The parts of `batch/v1`, `v1` and `networking.k8s.io/v1` that a runner uses, with the rules of a real server:
manifests are checked against the published schemas, a token is asked for, pods go when their node has ended them.
"""

import contextlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.kubernetes_api.objects import Objects, Refused
from tests.sandbox.engine_proxy import Faults

TOKEN = "a-token-of-the-tests"  # noqa: S105
_PATH = re.compile(
    r"/(?P<group>api/v1|apis/batch/v1|apis/networking\.k8s\.io/v1)/namespaces/(?P<namespace>[^/]+)"
    r"/(?P<kind>[a-z]+)(/(?P<name>[^/]+)(?P<log>/log)?)?"
)
_GROUPS = {"pods": "api/v1", "jobs": "apis/batch/v1", "networkpolicies": "apis/networking.k8s.io/v1"}
_VERBS = {"jobs": {"GET", "POST", "DELETE"}, "pods": {"GET", "DELETE"}, "networkpolicies": {"GET"}}
"""What the runner's Role allows; the rest is answered with 403."""


class ApiServer(Faults):
    """Listens on the loopback.

    Actions of faults: an HTTP status · `drop`, the connection breaks, not carried out · `lose`, carried out, and the
    answer is lost · `hang`, not carried out, no answer · `garbage`, an answer that is no JSON.
    """

    def __init__(self):
        super().__init__()
        self.objects = Objects()
        self.kubelet = None
        self._stopped = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                server.answer(self, self.command)

            do_POST = do_DELETE = do_GET  # noqa: N815 - the names of the standard library

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self):
        """Stops listening; what hangs breaks."""
        self._stopped.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, handler, method):
        """One request."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        action = self.meet(f"{method} {handler.path}")
        if action == "hang":
            self._stopped.wait(60)
        if action in {"hang", "drop"}:
            handler.close_connection = True
            return
        try:
            _admit(handler, action)
            status, data = 200, self._carry_out(method, handler.path, body)
        except Refused as error:
            status = error.status
            failure = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
            data = json.dumps({**failure, "reason": error.reason, "message": str(error)}).encode()
        if action == "lose":
            handler.close_connection = True
            return
        with contextlib.suppress(OSError):
            _send(handler, status, b"<html>a proxy</html>" if action == "garbage" else data)

    def _carry_out(self, method, target, body):
        url = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path == "/version/":
            return json.dumps({"major": "1", "minor": "37", "gitVersion": "v1.37.0-fake"}).encode()
        match = _PATH.fullmatch(url.path)
        if match is None or _GROUPS.get(match["kind"]) != match["group"]:
            raise Refused(404, "NotFound", f"no such path: {url.path}")
        kind, namespace, name = match["kind"], match["namespace"], match["name"]
        if method not in _VERBS[kind]:
            raise Refused(403, "Forbidden", f"the runner's Role does not allow {method} of {kind}")
        if match["log"]:
            uid = self.objects.get("pods", namespace, name)["metadata"]["uid"]
            return self.kubelet.log(uid, int(query["tailLines"]), int(query["limitBytes"]))
        if method == "POST":
            answer = self.objects.create(kind, namespace, _json(body))
        elif method == "DELETE":
            answer = self.objects.delete(kind, namespace, name, _json(body) if body else {})
        elif name:
            answer = self.objects.get(kind, namespace, name)
        else:
            items = self.objects.find(kind, namespace, query.get("labelSelector", ""))
            answer = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}
        return json.dumps(answer).encode()


def _admit(handler, action):
    if isinstance(action, int):
        raise Refused(action, "Fault", f"a fault of the test, {action}")
    if handler.headers.get("Authorization") != f"Bearer {TOKEN}":
        raise Refused(401, "Unauthorized", "Unauthorized")


def _json(body):
    try:
        return json.loads(body)
    except ValueError as error:
        raise Refused(400, "BadRequest", str(error)) from error


def _send(handler, status, data):
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    if status == 429:
        handler.send_header("Retry-After", "1")
    handler.end_headers()
    handler.wfile.write(data)
