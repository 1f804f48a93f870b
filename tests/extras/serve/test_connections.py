"""Slow clients, and too many of them, over real sockets."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import uvicorn

from softsearch.extras.serve import connection
from softsearch.extras.serve.app import make_app
from tests.extras.serve.test_app import BrokenDispatcher, make_service
from tests.support.serving import eventually

GET = b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"
POST = b"POST /translate HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
Connect = Callable[[], socket.socket]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[uvicorn.Server]:
    """A server that is impatient with slow clients, and takes 3 connections, and 3 more to refuse."""
    monkeypatch.setattr(connection, "RECEIVE_SECONDS", 0.5)
    monkeypatch.setattr(connection, "SEND_SECONDS", 0.5)
    monkeypatch.setattr(connection.Connection, "most", 3)
    listener = socket.create_server(("127.0.0.1", 0))
    settings = {"loop": "asyncio", "ws": "none", "lifespan": "off", "log_config": None}
    server = uvicorn.Server(
        uvicorn.Config(make_app(make_service(BrokenDispatcher)), http=connection.Connection, **settings)
    )
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    eventually(lambda: server.started)
    yield server
    server.should_exit = True
    thread.join()


@pytest.fixture
def connect(server: uvicorn.Server) -> Iterator[Connect]:
    """Connects to the server."""
    address = server.servers[0].sockets[0].getsockname()
    opened: list[socket.socket] = []

    def connect() -> socket.socket:
        opened.append(socket.create_connection(address, timeout=30))
        return opened[-1]

    yield connect
    for client in opened:
        client.close()


def _read_all(client: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    received = b""
    try:
        while data := client.recv(1 << 16):
            received += data
    except ConnectionResetError:
        pass
    return received


def _ask(client: socket.socket) -> bytes:
    client.sendall(GET)
    received = b""
    while not received.endswith(b"}") and (data := client.recv(1 << 16)):  # head and body
        received += data
    return received


@pytest.mark.parametrize("first", [b"", GET])
@pytest.mark.parametrize("start", [b"", b"GET", GET[:-2], POST, POST + b'{"text": '])
def test_a_request_that_does_not_arrive_is_given_up(first: bytes, start: bytes, connect: Connect) -> None:
    """Fault: a client sends its request slowly. Effect: closed after 20 seconds."""
    client = connect()
    client.settimeout(5)
    client.sendall(first + start)
    if first and not start:
        client.sendall(client.recv(1 << 16) and b"G")
    assert _read_all(client).count(b"HTTP/1.1") == (start != b"" and first != b"")


def test_bytes_that_trickle_gain_no_time(connect: Connect) -> None:
    client, closed = connect(), threading.Event()

    def trickle() -> None:
        try:
            while not closed.wait(0.1):
                client.sendall(b"x")
        except OSError:
            pass

    thread = threading.Thread(target=trickle)
    client.sendall(GET[:-2] + b"X-Slow: ")
    thread.start()
    try:
        assert _read_all(client) == b""
    finally:
        closed.set()
        thread.join()


def test_answers_are_sent_at_once(server: uvicorn.Server, connect: Connect) -> None:
    """Fault: the body of an answer waits until the client has acknowledged its head. Effect: 40 ms more."""
    _ask(connect())
    (connection,) = server.server_state.connections
    accepted = connection.transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_each_request_of_a_connection_has_the_whole_time(connect: Connect) -> None:
    client = connect()
    for _ in range(4):
        assert _ask(client).startswith(b"HTTP/1.1 200")
        threading.Event().wait(0.3)  # of the 0.5 s that a request may take
    client.sendall(GET[:-2])
    assert _read_all(client) == b""


@pytest.mark.parametrize("nonsense", [b"\x16\x03\x01\x02\x00\r\n\r\n", GET.replace(b"Host", b"Ho st"), b"x" * 100_000])
def test_what_is_no_http_gets_the_same_shape_of_error(nonsense: bytes, connect: Connect) -> None:
    client = connect()
    client.sendall(nonsense)
    head, _, body = _read_all(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body) == {"error": "this is not a valid HTTP request; correct the client"}


def test_a_client_that_does_not_read_is_given_up(connect: Connect, server: uvicorn.Server) -> None:
    """Fault: a client does not read its answer. Effect: closed after 30 seconds."""
    client = connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(5)

    def ask_for_ever() -> None:
        while True:  # the server reads no more while its answers are not taken, and then closes
            client.sendall(GET.replace(b"healthz", b"openapi.json"))

    with pytest.raises(OSError, match=r"reset|Broken pipe|timed out"):  # some kernels do not tell who waits to send
        ask_for_ever()
    eventually(lambda: not server.server_state.connections)


def test_beyond_the_connections_requests_are_refused_and_then_not_accepted(connect: Connect) -> None:
    """Fault: more connections than the limit. Effect: 503, then connections are closed."""
    taken = [connect() for _ in range(3)]
    assert all(_ask(client).startswith(b"HTTP/1.1 200") for client in taken)
    refused = [connect() for _ in range(3)]
    refused[0].sendall(GET)
    head, _, body = _read_all(refused[0]).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 5" in head
    assert "too many connections" in json.loads(body)["error"]
    connect()
    assert _read_all(connect()) == b""
    for client in (*taken, *refused):
        client.close()
    eventually(lambda: _ask(connect()).startswith(b"HTTP/1.1 200"))


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file handles")
@pytest.mark.parametrize(
    ("soft", "hard", "raised", "most"), [(64, 256, 256, 51), (256, 4096, 4096, 819), (1024, -1, 8192, 1000)]
)
def test_connections_are_as_many_as_file_handles_suffice_for(soft: int, hard: int, raised: int, most: int) -> None:
    import resource

    if hard < 0:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if 0 <= hard < raised:
            pytest.skip(f"this host allows {hard} file handles")
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from softsearch.extras.serve.running import most_connections
print(most_connections(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(most), str(raised)]
