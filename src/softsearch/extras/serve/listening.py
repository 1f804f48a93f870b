"""Listening sockets: one, or several on one port among which the kernel shares out new connections."""

import socket
import sys
from typing import Any

from softsearch.errors import ConfigError, SoftsearchError

_BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """Opens a listening socket.

    Raises:
        SoftsearchError: the address is in use, or not of this host.
    """
    try:
        return socket.create_server((host, port), family=_family(host), backlog=_BACKLOG)
    except OSError as error:
        raise SoftsearchError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another --port or --host"
        ) from error


def reserve(host: str, port: int) -> socket.socket:
    """Binds a socket to the port without listening, so that nobody else takes it; `joined` opens the others.

    Raises:
        ConfigError: this system does not share out connections.
        SoftsearchError: see ``listen``.
    """
    if sys.platform != "linux":  # others have SO_REUSEPORT, but give all connections to one socket
        raise ConfigError("--processes needs Linux, which shares out connections; remove it")
    with listen(host, port) as alone:  # which fails if another server has the port, even one with SO_REUSEPORT
        port = alone.getsockname()[1]
    return joined(host, port)


def joined(host: str, port: int) -> socket.socket:
    """Opens one of several sockets on a port; it has a share of new connections as soon as it listens."""
    opened = socket.socket(_family(host), socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if _family(host) == socket.AF_INET6:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as in create_server
    opened.bind((host, port))
    return opened


def facts_of(listener: socket.socket) -> dict[str, Any]:
    """Returns host, port and URL of a socket, for the log."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return {"host": host, "port": port, "url": f"http://{shown}:{port}/"}


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
