"""Several HTTP processes on one port: load, deaths, metrics, files, reloads and the end."""

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from softsearch.extras.serve.monitoring import Metrics
from softsearch.extras.serve.shared_state import State
from tests.support.programs import run_python
from tests.support.serving import BUNDLE, Served, alive, eventually, serving, stopped

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shares out connections")
BODY = b'{"text": "one two three"}'
REQUEST = (
    b"POST /translate HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
    % (len(BODY), BODY)
)


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(BUNDLE, "--processes", 2, "--workers", 2) as server:
        yield server


def processes(served: Served) -> list[int]:
    """The HTTP processes."""
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text().split()
    return [int(pid) for pid in children if "--multiprocessing-fork" in Path(f"/proc/{pid}/cmdline").read_text()]


def answer(served: Served, path: str = "/readyz") -> httpx.Response:
    """An answer on a connection of its own."""
    with httpx.Client(trust_env=False, timeout=60, verify=False) as client:
        return client.get(served.url + path)


def refused(served: Served) -> bool:
    """Whether nothing listens on the port."""
    with socket.socket() as client:
        return client.connect_ex(served.address) != 0


def requests(served: Served) -> dict[str, int]:
    """The translations of each process, from the metrics that any of them gives."""
    found = re.findall(
        r'softsearch_requests_total{process="(.)",route="/translate",status="200"} (\d+)',
        answer(served, "/metrics").text,
    )
    return {process: int(count) for process, count in found}


def test_metrics_of_processes_are_told_apart() -> None:
    state, ours, theirs = State(), Metrics(1), Metrics(2)
    ours.on_request("/x", 200, 0.1)
    theirs.on_request("/x", 200, 0.1)
    theirs.on_request("/x", 503, 0.1)
    state.report(2, theirs.collected())
    text = state.all_metrics(1, ours.collected()).decode()
    assert 'softsearch_requests_total{process="1",route="/x",status="200"} 1.0' in text
    assert 'softsearch_requests_total{process="2",route="/x",status="503"} 1.0' in text
    assert text.count("# TYPE softsearch_requests_total counter") == 1
    state.forget(2)
    assert 'process="2"' not in state.all_metrics(1, ours.collected()).decode()


@pytest.mark.day
async def test_400_clients_are_answered_by_two_processes(served: Served) -> None:
    async def client() -> list[bytes]:
        reader, writer = await asyncio.open_connection(*served.address)
        heads = []
        for _ in range(2):
            writer.write(REQUEST)
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            length = re.search(rb"content-length: (\d+)", heads[-1])
            assert length, heads
            assert b'"einhunderteins"' in await reader.readexactly(int(length[1]))
        writer.close()
        return heads

    heads = await asyncio.gather(*(client() for _ in range(400)))
    assert all(head.startswith(b"HTTP/1.1 200") for pair in heads for head in pair)
    await asyncio.sleep(1.5)  # more than the time between two reports
    counts = await asyncio.to_thread(requests, served)
    assert sum(counts.values()) == 800
    assert all(count > 200 for count in counts.values()), counts


@pytest.mark.day
def test_a_process_that_dies_is_replaced_and_the_other_one_answers_meanwhile(served: Served) -> None:
    victim, other = processes(served)
    (worker,) = Path(f"/proc/{victim}/task/{victim}/children").read_text().split()[-1:]
    os.kill(victim, signal.SIGKILL)
    served.wait("HTTP process died and is replaced", process=1, exitcode=-9)
    eventually(lambda: not alive(int(worker)))
    while not any(line["event"] == "HTTP process replaced" for line in [*served.events]):
        assert answer(served).status_code == 200
    assert other in processes(served)
    assert len(processes(served)) == 2
    assert [answer(served).status_code for _ in range(20)] == [200] * 20
    assert {line["process"] for line in served.events[-20:]} == {1, 2}
    assert served.stop() == 128 + signal.SIGTERM


@pytest.mark.day
def test_a_file_is_fetched_from_any_process(served: Served) -> None:
    form = {"source": "en", "target": "de"}
    with httpx.Client(trust_env=False, timeout=60, verify=False) as client:
        sent = client.post(f"{served.url}/translate_file", files={"file": ("x.txt", b"ten")}, data=form)
    path = "/download_file" + sent.json()["translatedFileUrl"].partition("/download_file")[2]
    assert {answer(served, path).content for _ in range(20)} == {b"zehn"}
    assert answer(served, "/download_file/x").status_code == 404
    answered = {line["process"] for line in served.events if line.get("route") == "/download_file/{name}"}
    assert answered == {1, 2}


@pytest.mark.day
def test_signals_reach_all_processes_and_open_requests_are_answered(served: Served) -> None:
    served.process.send_signal(signal.SIGHUP)
    for process in (1, 2):
        served.wait("reloaded", process=process)
    workers = [Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[-1] for pid in processes(served)]
    with socket.create_connection(served.address, timeout=60) as client:
        with stopped([*map(int, workers)]):
            client.sendall(REQUEST)
            eventually(lambda: b"softsearch_characters_total{" in answer(served, "/metrics").content)  # it was read
            served.process.terminate()
            served.wait("stopping")
            eventually(lambda: refused(served))  # until both have closed their sockets
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
    assert served.stop() == 128 + signal.SIGTERM
    assert served.events[-1]["event"] == "stopped"


@pytest.mark.day
def test_http_processes_end_with_the_main_process(served: Served) -> None:
    found = processes(served)
    served.stop(signal.SIGKILL)
    eventually(lambda: not any(map(alive, found)))


@pytest.mark.day
def test_what_keeps_the_processes_from_starting_ends_the_server(served: Served, victim: Path) -> None:
    port = str(served.address[1])
    done = run_python("-m", "softsearch", "serve", str(BUNDLE), "--processes", "2", "--port", port)
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in done.stderr.splitlines()[-1]
    (victim / "encoder.onnx").unlink()
    done = run_python("-m", "softsearch", "serve", str(victim), "--processes", "2", "--port", "0")
    assert done.returncode == 1
    (error,) = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert error.startswith("softsearch: error: ")
    assert "encoder.onnx" in error
