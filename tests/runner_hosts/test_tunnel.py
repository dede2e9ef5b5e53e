"""Who gets through between a runner host and the control host, to which service, and for how long."""

import contextlib
import datetime as dt
import socket
import ssl
import threading

import pytest
import sqlalchemy
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from structlog.testing import capture_logs

from grader_service.errors import ConfigurationError
from grader_service.runner_hosts import tunnel
from grader_service.runner_hosts.certificates import connecting, make_pair
from grader_service.store.engine import SCHEMA, Store
from tests.runner_hosts.ends import asked, given, greeted, refused, stranger
from tests.services.stream_proxy import StreamProxy
from tests.waiting import wait_for


@pytest.fixture
def control(ends, tmp_path):
    """A control host that knows nobody."""
    return ends.control(tmp_path / "secrets")


@pytest.fixture
def broker(ends):
    """A service behind it."""
    return ends.echo("broker")


def client(folder, route="broker"):
    """How the host with these files connects."""
    return connecting(folder / "host.pem", folder / "host.key", folder / "control.pem", route)


def test_each_service_is_reached_by_its_own_way(ends, control, broker, tmp_path):
    """And back; several connections at once do not mix."""
    database = ends.echo("database")
    where = control.accepts(broker=broker.where, database=database.where)
    here = ends.connects(control.host("gpu1", tmp_path / "gpu1"), where, "broker", "database")
    assert asked(here["broker"]) == b"broker hello"
    assert asked(here["database"], b"again") == b"database again"


def test_nothing_is_lost_of_much(ends, control, tmp_path):
    """Both directions at once, with a reader who begins late, then an end that closes when it has sent all."""
    sent = bytes(range(256)) * (1 << 15)  # 8 MiB
    got = bytearray()

    class Server(threading.Thread):
        def __init__(self):
            super().__init__(daemon=True)
            self.socket = socket.create_server(("127.0.0.1", 0))
            self.where = self.socket.getsockname()

        def run(self):
            with self.socket, self.socket.accept()[0] as peer:
                sender = threading.Thread(target=peer.sendall, args=(sent,))
                sender.start()
                while len(got) < len(sent) and (piece := peer.recv(1 << 16)):
                    got.extend(piece)
                sender.join()

    server = Server()
    server.start()
    here = ends.connects(control.host("gpu1", tmp_path / "gpu1"), control.accepts(broker=server.where), "broker")
    with socket.create_connection(here["broker"], 30) as client:
        client.sendall(sent)
        back = bytearray()
        while piece := client.recv(1 << 16):
            back.extend(piece)
    server.join()
    assert (got, back) == (sent, sent)


class TestWhoIsRefused:
    """The service behind sees nothing of them."""

    @pytest.fixture
    def where(self, control, broker, tmp_path):
        """Where the control host takes connections; it knows gpu1, which gets through."""
        where = control.accepts(broker=broker.where)
        assert greeted(where, client(control.host("gpu1", tmp_path / "gpu1"))) == b"broker hello"
        broker.met = 0
        return where

    @pytest.fixture(autouse=True)
    def _unseen(self, broker, where):
        with capture_logs() as logs:
            yield
            # An operator finds each in the log, and none as a defect of ours.
            wait_for(lambda: [one["event"] for one in logs] == ["connection_refused"], 5)
        assert broker.met == 0

    def test_without_a_certificate(self, where):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["broker"])
        assert refused(where, context)

    def test_without_tls(self, where):
        assert asked(where) == b""

    def test_a_certificate_of_the_same_name(self, where, control, tmp_path):
        """A name is no proof."""
        assert refused(where, client(stranger(tmp_path / "stranger", control)))

    def test_one_that_a_known_host_issued(self, where, control, tmp_path):
        """Whose key signs its own connections only."""
        issuer = serialization.load_pem_private_key((tmp_path / "gpu1" / "host.key").read_bytes(), None)
        known = x509.load_pem_x509_certificate((tmp_path / "gpu1" / "host.pem").read_bytes())
        key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
        issued = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpu2")]))
            .issuer_name(known.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .sign(issuer, hashes.SHA256())
        )
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        made = given(
            tmp_path / "issued",
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain),
            issued.public_bytes(pem) + known.public_bytes(pem),
            control.register.certificate.read_bytes(),
        )
        assert refused(where, client(made))

    def test_the_control_hosts_own(self, where, control, tmp_path):
        """It is for the end that is connected to."""
        own = control.register
        made = given(tmp_path / "own", own.key.read_bytes(), own.certificate.read_bytes(), own.certificate.read_bytes())
        assert refused(where, client(made))

    def test_an_older_tls(self, where, tmp_path):
        context = client(tmp_path / "gpu1")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert refused(where, context)

    @pytest.mark.parametrize("route", ["results", "broker2", ""])
    def test_a_service_that_is_not_for_runner_hosts(self, where, tmp_path, route):
        """Nor is there one for who asks for none."""
        context = client(tmp_path / "gpu1")
        context.set_alpn_protocols([route] if route else [])
        assert refused(where, context)


def test_another_control_host_is_not_believed(ends, control, broker, tmp_path):
    """Even where it has made the runner host known itself: it could hand out runs of its own."""
    host = control.host("gpu1", tmp_path / "gpu1")
    impostor = ends.control(tmp_path / "impostor")
    with impostor.register.added("gpu1"):
        pass
    (impostor.register.folder / "known" / "gpu1.pem").chmod(0o644)
    (impostor.register.folder / "known" / "gpu1.pem").write_bytes((host / "host.pem").read_bytes())
    assert asked(ends.connects(host, impostor.accepts(broker=broker.where), "broker")["broker"]) == b""
    assert broker.met == 0


def test_a_host_is_known_from_its_adding_to_its_removal(ends, control, broker, tmp_path):
    """Without a restart, and what it has open ends; others' connections go on."""
    where = control.accepts(broker=broker.where)
    first, second = (control.host(name, tmp_path / name) for name in ("gpu1", "gpu2"))
    here, there = (ends.connects(files, where, "broker")["broker"] for files in (first, second))
    with socket.create_connection(here, 10) as gone, socket.create_connection(there, 10) as kept:
        for one in (gone, kept):
            one.sendall(b"hello")
            assert one.recv(100) == b"broker hello"
        control.register.remove("gpu1")
        gone.settimeout(30)
        assert gone.recv(100) == b""
        kept.sendall(b"still")
        assert kept.recv(100) == b"broker still"
    assert asked(here) == b""
    assert asked(there) == b"broker hello"


def test_a_control_host_that_comes_back_is_found(ends, control, broker, tmp_path):
    """Meanwhile connections end, as those to a server that is away."""
    way = StreamProxy(control.accepts(broker=broker.where))
    here = ends.connects(control.host("gpu1", tmp_path / "gpu1"), ("127.0.0.1", way.port), "broker")["broker"]
    try:
        assert asked(here) == b"broker hello"
        way.go_away()
        assert asked(here) == b""
        way.come_back()
        assert asked(here) == b"broker hello"
    finally:
        way.close()


def test_a_service_that_is_away_ends_connections(ends, control, broker, tmp_path):
    """At once: who waits for an answer that nobody gives would wait for its own time limit."""
    here = ends.connects(control.host("gpu1", tmp_path / "gpu1"), control.accepts(broker=broker.where), "broker")
    broker.close()
    assert asked(here["broker"]) == b""


def test_who_hangs_up_early_does_no_harm(ends, control, broker, tmp_path):
    """A connection that is reset before, in or after the handshake ends itself and nothing else."""
    where = control.accepts(broker=broker.where)
    here = ends.connects(control.host("gpu1", tmp_path / "gpu1"), where, "broker")["broker"]
    with capture_logs() as logs:
        for begun in (b"", b"\x16\x03\x01\x02\x00", bytes(2000)):
            for place in (where, here):
                with socket.create_connection(place, 10) as one, contextlib.suppress(OSError):
                    one.sendall(begun)
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        assert asked(here) == b"broker hello"
    assert "connection_failed" not in {one["event"] for one in logs}


def test_a_defect_in_one_connection_ends_no_other(ends, control, broker, tmp_path, monkeypatch):
    """At either end: all runs of a host, or of all hosts, would wait for a restart."""
    here = ends.connects(control.host("gpu1", tmp_path / "gpu1"), control.accepts(broker=broker.where), "broker")
    good, defects = tunnel._secured, [True, False]  # of the one end, then of the other

    async def bad(stream, context, *, server_side):
        if defects and defects[0] is server_side:
            defects.pop(0)
            raise ZeroDivisionError
        return await good(stream, context, server_side=server_side)

    monkeypatch.setattr(tunnel, "_secured", bad)
    while defects:
        assert asked(here["broker"]) == b""
    assert asked(here["broker"]) == b"broker hello"


@pytest.mark.parametrize("lost", ["host.key", "host.pem", "control.pem"])
def test_what_a_host_was_not_given_is_named(ends, control, tmp_path, lost):
    """With what it should be, before it connects to anything."""
    files = control.host("gpu1", tmp_path / "gpu1")
    (files / lost).unlink()
    with pytest.raises(ConfigurationError, match=lost):
        client(files)


def test_a_key_of_another_certificate_is_refused(control, tmp_path):
    """As after files of two archives were mixed."""
    files = control.host("gpu1", tmp_path / "gpu1")
    (files / "host.key").write_bytes(make_pair("gpu1", server=False)[0])
    with pytest.raises(ConfigurationError, match="cannot be used"):
        client(files)


def test_redis_and_postgresql_work_through_it(ends, control, redis, postgres_url, tmp_path):
    """As they do without, and again after every connection was cut."""
    base, folder = postgres_url.split("?host=")
    server = StreamProxy(f"{folder}/.s.PGSQL.5432")
    where = control.accepts(broker=("127.0.0.1", redis.port), database=("127.0.0.1", server.port))
    way = StreamProxy(where)
    here = ends.connects(control.host("gpu1", tmp_path / "gpu1"), ("127.0.0.1", way.port), "broker", "database")
    redis.port = here["broker"][1]  # for its clients; it was told its own number when it started
    store = Store(base.replace("grader@", f"grader@127.0.0.1:{here['database'][1]}"))
    broker = redis.client()
    try:
        for _ in range(2):
            assert store.schema() == SCHEMA
            assert broker.rpush("list", b"x" * (1 << 20)) > 0
            assert way.reset() > 0
            with contextlib.suppress(sqlalchemy.exc.OperationalError):
                store.schema()  # the first to notice
        assert wait_for(store.schema, 10) == SCHEMA
        assert broker.llen("list") == 2
    finally:
        store.close()
        broker.close()
        way.close()
        server.close()
