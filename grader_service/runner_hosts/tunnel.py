"""Connections of a runner host to services of the control host, through TLS with a certificate on both sides.

On the runner host `connect` listens where its services look for Redis and PostgreSQL, and carries each connection to
the control host, where `accept` hands it to the service that it is for. It asks for that one by ALPN; there are no
others than those that `accept` was given. So no service listens for other hosts itself, and the runner has no key.
"""

# ruff: noqa: S610 - `extra` is how anyio is asked about a connection
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import structlog
from anyio.abc import ByteStream, Listener, SocketAttribute, SocketStream, TaskStatus
from anyio.streams.tls import TLSAttribute, TLSStream

from grader_service.errors import ConfigurationError
from grader_service.runner_hosts.certificates import accepting, connecting
from grader_service.runner_hosts.register import Register

Address = tuple[str, int]
_CONNECT_S = 10.0
_LOOK_S = 2.0
"""Time between two looks whether a connected host is still known."""
_KEEP_ALIVE = {
    socket.TCP_KEEPIDLE: 30,
    socket.TCP_KEEPINTVL: 10,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 60_000,  # milliseconds, where something was sent that nobody acknowledges
}
"""A connection ends a minute after the other host went away without a word; what it held is free then."""
_ENDED = (
    anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.TypedAttributeLookupError, OSError,
)  # fmt: skip
"""How a connection shows that it has ended. OSError is that of TLS, of names and of time limits, too."""
_HUNG_UP = "it may not know this host (any more), or the service does not run there: its log says which"
_log = structlog.get_logger()


async def accept(
    register: Register,
    targets: Mapping[str, Address],
    listen: Address,
    *,
    task_status: TaskStatus[Address] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """The control host's end: takes connections of known runner hosts, until it is cancelled.

    A host that is added is known at once; connections of one that is removed end within seconds.

    Args:
        targets: route to the address of the service that it leads to.
        listen: 0 as the port takes a free one.
        task_status: is told the address once connections are taken.

    Raises:
        ConfigurationError: a certificate cannot be used, or the address cannot be listened on.
    """

    def context() -> ssl.SSLContext:
        return accepting(register.certificate, register.key, register.known().values(), list(targets))

    async def take(stream: SocketStream) -> None:
        about: dict[str, object] = {}
        async with stream:
            try:
                about["address"] = _address(stream.extra(SocketAttribute.remote_address))
                tls = await _secured(stream, context(), server_side=True)
            except (*_ENDED, ConfigurationError) as error:
                _log.warning("connection_refused", **about, reason=_text(error))
                return
            certificate = tls.extra(TLSAttribute.peer_certificate_binary) or b""
            route = tls.extra(TLSAttribute.alpn_protocol) or "none"
            about |= {"host": register.name_of(certificate), "service": route}
            if route not in targets:
                _log.warning("connection_refused", **about, reason=f"expected a service of {', '.join(targets)}")
                return
            try:
                service = await _reached(targets[route])
            except _ENDED as error:
                _log.warning("service_away", **about, reason=_text(error))
                return
            async with service, anyio.create_task_group() as group:
                group.start_soon(_carry, tls, service, group.cancel_scope)
                group.start_soon(_carry, service, tls, group.cancel_scope)
                while register.name_of(certificate) is not None:  # noqa: ASYNC110 - nobody tells of files
                    await anyio.sleep(_LOOK_S)
                _log.warning("connection_ended", **about, reason="the host was removed")
                group.cancel_scope.cancel()

    context()  # what is wrong with it is said now
    async with await _listener(listen) as listener:
        _log.info("accepting", hosts=list(register.known()), services=list(targets))
        task_status.started(_address(listener.extra(SocketAttribute.local_address)))
        await listener.serve(partial(_alone, take))


async def connect(
    files: Path,
    control: Address,
    routes: Mapping[str, Address],
    *,
    task_status: TaskStatus[dict[str, Address]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """A runner host's end: listens in the place of the control host's services, until it is cancelled.

    Args:
        files: folder with the host's key and both certificates.
        control: where the control host accepts connections.
        routes: route to the address on which to listen for its connections; 0 as the port takes a free one.
        task_status: is told these addresses once connections are taken.

    Raises:
        ConfigurationError: a certificate cannot be used, or an address cannot be listened on.
    """

    async def serve(route: str, listener: Listener[SocketStream]) -> None:
        context = connecting(files / "host.pem", files / "host.key", files / "control.pem", route)

        async def take(stream: SocketStream) -> None:
            about: dict[str, object] = {"address": control, "service": route}
            async with stream:
                try:
                    remote = await _reached(control)
                except _ENDED as error:
                    _log.warning("control_host_away", **about, reason=_text(error))
                    return
                async with remote:
                    try:
                        tls = await _secured(remote, context, server_side=False)
                    except _ENDED as error:
                        _log.warning("control_host_refused", **about, reason=_text(error))
                        return
                    async with anyio.create_task_group() as group:
                        group.start_soon(_carry, stream, tls, group.cancel_scope)
                        if not await _carry(tls, stream, group.cancel_scope):
                            # By TLS 1.3 the end that connects learns of a refusal after the handshake, if at all.
                            _log.warning("control_host_hung_up", **about, reason=_HUNG_UP)

        async with listener:
            await listener.serve(partial(_alone, take))

    async with anyio.create_task_group() as group:
        listeners = {route: await _listener(address) for route, address in routes.items()}
        for route, listener in listeners.items():
            group.start_soon(serve, route, listener)
        _log.info("connecting", address=control, services=list(routes))
        where = {route: listener.extra(SocketAttribute.local_address) for route, listener in listeners.items()}
        task_status.started({route: _address(found) for route, found in where.items()})


async def _alone(take: Callable[[SocketStream], Awaitable[None]], stream: SocketStream) -> None:
    """Whatever happens to a connection ends no other one."""
    try:
        await take(stream)
    except Exception:  # noqa: BLE001 - see above
        _log.exception("connection_failed")


async def _carry(source: ByteStream, sink: ByteStream, scope: anyio.CancelScope) -> bool:
    """Carries bytes until one end ends, and then ends the other direction too; whether any came."""
    came = False
    try:
        async for piece in source:
            came = True
            await sink.send(piece)
    except _ENDED:
        pass
    scope.cancel()
    return came


async def _secured(stream: SocketStream, context: ssl.SSLContext, *, server_side: bool) -> TLSStream:
    raw = stream.extra(SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE.items():
        raw.setsockopt(socket.IPPROTO_TCP, option, value)
    with anyio.fail_after(_CONNECT_S):
        return await TLSStream.wrap(stream, server_side=server_side, ssl_context=context, standard_compatible=False)


async def _reached(address: Address) -> SocketStream:
    with anyio.fail_after(_CONNECT_S):
        return await anyio.connect_tcp(*address)


async def _listener(address: Address) -> Listener[SocketStream]:
    try:
        (listener,) = (await anyio.create_tcp_listener(local_host=address[0], local_port=address[1])).listeners
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {address[0]} port {address[1]}: {error}") from error
    return listener


def _address(found: tuple[str, int] | str) -> Address:
    """Of an address of anyio's, which might be that of a Unix socket as well."""
    return str(found[0]), int(found[1])


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
