"""The server under overload, deadlines, clients that leave, signals, and workers that die, over real sockets.

Bad requests are in tests/extras/serve/test_answers.py, slow clients in test_connections.py there.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.bundles import edit_manifest
from tests.support.serving import BUNDLE, GOLDEN, Served, eventually, serving, stopped

linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

SOURCES = (GOLDEN / "sources.txt").read_text().splitlines()
TRANSLATIONS = (GOLDEN / "translations.txt").read_text().splitlines()
LONG = " ".join(SOURCES)  # with SLOW a batch of its own, which takes some tenths of a second
SLOW: dict[str, Any] = {"beam": 20, "min_length": 300, "max_length": 300}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server with one worker and a short queue."""
    limits = ("--workers", 1, "--queue", 32, "--max-sentences", 32)
    with serving(f"golden={BUNDLE}", *limits) as server:
        yield server


def _client(served: Served) -> httpx.Client:
    return httpx.Client(base_url=served.url, timeout=60, trust_env=False, verify=False)


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with _client(served) as session:
        yield session


def _metrics(client: httpx.Client) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def _queue(client: httpx.Client) -> float:
    return _metrics(client)["softsearch_queue_lines",]


def _translate(client: httpx.Client, lines: list[str], **options: Any) -> httpx.Response:
    return client.post("/translate", json={"text": lines, **options})


def _check_that_it_works(client: httpx.Client) -> None:
    answer = _translate(client, SOURCES)
    assert answer.status_code == 200, answer.text
    assert [each["n_best"][0]["text"] for each in answer.json()["translations"]] == TRANSLATIONS


def _request(path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode()


def _post(served: Served, path: str, body: dict[str, Any]) -> socket.socket:
    """A connection that has asked and does not read."""
    connection = socket.create_connection(served.address, timeout=60)
    connection.sendall(_request(path, body))
    return connection


@pytest.mark.day  # extras/serve/test_pool.py
def test_an_overloaded_server_refuses_and_goes_on(served: Served, client: httpx.Client) -> None:
    """Fault: 200 clients send more sentences than the queue takes.

    Effect: 503 with `Retry-After`; memory stays bounded.
    """
    _check_that_it_works(client)

    async def ask(number: int) -> tuple[int, dict[str, Any]]:
        """The status and the body; of a refusal, which must have a Retry-After, too."""
        body = {"text": SOURCES[number % len(SOURCES)], "n_best": 5, "min_length": 40}
        reader, writer = await asyncio.open_connection(*served.address)
        writer.write(_request("/translate", body))
        head, _, content = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        status = int(head.split()[1])
        assert (status == 503) == (re.search(rb"retry-after: [1-9]", head) is not None)
        return status, json.loads(content)

    async def overload() -> list[tuple[int, dict[str, Any]]]:
        return await asyncio.gather(*map(ask, range(200)))

    asyncio.run(overload())
    before = _metrics(client)["process_resident_memory_bytes",]
    answers = [answer for _ in range(3) for answer in asyncio.run(overload())]
    grown = _metrics(client)["process_resident_memory_bytes",] - before
    assert {status for status, _ in answers} == {200, 503}
    for status, answer in answers:
        if status == 503:
            assert "lines are waiting" in answer["error"]
        else:
            assert len(answer["translations"][0]["n_best"]) == 5
    assert grown < 20e6, "600 more requests take no more memory"
    _check_that_it_works(client)


@pytest.mark.day  # extras/serve/test_dispatcher.py
@linux
def test_a_deadline_cancels_what_has_not_begun() -> None:
    """Fault: a request reaches its deadline. Effect: 504; its sentences are dropped."""
    limits = ("--workers", 1, "--deadline", 0.5)
    with serving(f"golden={BUNDLE}", *limits) as served, _client(served) as client:
        with stopped(_workers(served)):
            answer = _translate(client, [LONG[:60]] * 32, **SLOW)
            assert answer.status_code == 504, answer.text
            assert " of 32 lines had not begun after 0.5 s" in answer.json()["error"]
            assert _queue(client) == 0
        eventually(lambda: _translate(client, SOURCES[:1]).status_code == 200)  # a busy machine may miss its deadline


@pytest.mark.day  # extras/serve/test_dispatcher.py
def test_a_client_that_leaves_frees_its_lines(served: Served, client: httpx.Client) -> None:
    """Fault: a client leaves. Effect: its sentences are dropped."""
    connection = _post(served, "/translate", {"text": [LONG] * 30, **SLOW})
    eventually(lambda: _queue(client) > 20)
    connection.close()
    eventually(lambda: _queue(client) == 0)
    served.wait("request", status=499, sentences=30)
    _check_that_it_works(client)


def test_a_client_that_leaves_a_stream_ends_its_searches(served: Served, client: httpx.Client) -> None:
    def batches() -> float:
        return _metrics(client).get(("softsearch_batch_lines_count", "golden"), 0.0)

    body = {"text": LONG, **SLOW}
    began = batches()
    whole = client.post("/translate/stream", json=body).text.count("event: ")
    assert batches() - began == whole
    assert whole > 6
    began = batches()
    connection = _post(served, "/translate/stream", body)
    received = b""
    while b"event: partial" not in received:
        received += connection.recv(1 << 16)
    connection.close()
    eventually(lambda: sum(line.get("route") == "/translate/stream" for line in served.events) == 2)
    _check_that_it_works(client)  # after what may still have been in the worker
    assert batches() - began < whole


def test_a_bad_line_fails_alone(client: httpx.Client) -> None:
    """Fault: one bad sentence in a batch. Effect: only its request fails."""

    def ask(number: int) -> httpx.Response:
        prefix = "Ж" if number == 10 else ""
        return _translate(client, [SOURCES[number]], prefix=[prefix])

    with ThreadPoolExecutor(len(SOURCES)) as pool:
        answers = list(pool.map(ask, range(len(SOURCES))))
    assert answers.pop(10).status_code == 422
    texts = [answer.json()["translations"][0]["n_best"][0]["text"] for answer in answers]
    assert texts == TRANSLATIONS[:10] + TRANSLATIONS[11:]


def _workers(served: Served) -> list[int]:
    """The process ids of the workers, the newest last."""
    pid = served.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sorted(int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes())


@pytest.mark.day  # extras/serve/test_pool.py
@linux
def test_a_worker_that_dies_is_replaced(served: Served, client: httpx.Client) -> None:
    """Fault: a worker process is killed. Effect: it is replaced, and its requests are answered."""
    eventually(lambda: client.get("/readyz").status_code == 200)  # after a test before, whose worker is replaced
    (worker,) = _workers(served)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(_translate, client, [LONG], **SLOW)
        eventually(lambda: Path(f"/proc/{worker}/stat").read_text().split()[2] == "R")
        os.kill(worker, signal.SIGKILL)
        assert answer.result().status_code == 200
    eventually(lambda: _metrics(client)["softsearch_worker_restarts_total",] == 1)
    _check_that_it_works(client)


def _hung(served: Served) -> AbstractContextManager[None]:
    """Its workers do nothing any more, and are killed at the end of the block."""
    return stopped(_workers(served), signal.SIGKILL)


@pytest.mark.day  # extras/serve/test_pool.py
@linux
def test_a_worker_that_hangs_is_replaced_and_holds_up_nobody_else() -> None:
    """Fault: a worker hangs.

    Effect: killed after `--batch-timeout` and replaced; its requests get 504, nobody else waits.
    """
    limits = ("--workers", 1, "--batch-timeout", 2, "--max-characters", 7000)
    with serving(f"golden={BUNDLE}", *limits) as served, _client(served) as client, _hung(served):
        with ThreadPoolExecutor(1) as pool:
            # One batch, and more than the pipe takes at once: the server must not wait until the worker reads.
            answer = pool.submit(_translate, client, [f"one{' ' * 6990}two"] * 128)
            while not answer.done():
                assert client.get("/healthz", timeout=1.5).status_code == 200
                time.sleep(0.05)
        assert answer.result().status_code == 504, answer.result().text
        assert answer.result().json()["error"] == "a batch took more than 2 s; send fewer or shorter lines"
        served.wait("a worker process did not finish a batch within 2 s and is killed", level="error")
        served.wait("worker process died with exit code -9; replacing it", level="warning")
        eventually(lambda: client.get("/readyz").status_code == 200)
        _check_that_it_works(client)
        assert served.stop() == 143


@pytest.mark.day
@linux
@pytest.mark.usefixtures("sigint")
@pytest.mark.parametrize(("deadline", "number", "code"), [(0.5, signal.SIGTERM, 143), (60, signal.SIGINT, 130)])
def test_a_stop_does_not_wait_for_workers_that_hang(deadline: float, number: signal.Signals, code: int) -> None:
    """Fault: the server is stopped while a worker hangs. Effect: the stop does not wait for it."""
    limits = ("--workers", 2, "--deadline", deadline)
    with serving(f"golden={BUNDLE}", *limits) as served, _client(served) as client, _hung(served):
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(_translate, client, ["ten"])
            # One worker hangs while it is busy, the other one while it is idle.
            eventually(lambda: ("softsearch_characters_total", "golden") in _metrics(client))
            began = time.monotonic()
            if number == signal.SIGINT:  # the second one waits for no deadline
                served.process.send_signal(number)
                served.wait("stopping")
            assert served.stop(number) == code
            assert time.monotonic() - began < 30
        assert answer.result().status_code == 503
        assert "the server is stopping before it has an answer" in answer.result().json()["error"]
        assert answer.result().headers["retry-after"] == "5"
        assert not any("Traceback" in str(line) for line in served.events)


@pytest.mark.day
@linux
def test_large_answers_leave_no_memory_behind() -> None:
    """Fault: the largest answers that the limits allow, again and again.

    Effect: memory is freed at the end of each request.
    """
    with serving(f"golden={BUNDLE}", "--workers", 2) as served, _client(served) as client:
        text, grown = ["one two " * 25] * 64, []
        for _ in range(10):
            answer = _translate(client, text, beam=20, n_best=20, max_length=2)  # as large as the limits allow
            assert answer.status_code == 200, answer.text
            assert len(answer.content) > 900_000
            grown.append(_metrics(client)["process_resident_memory_bytes",] / 1e6)
    assert grown[-1] - grown[0] < 20, grown


@pytest.mark.day
@linux
def test_without_file_handles_the_log_stays_short_and_clients_come_back() -> None:
    """Fault: no file handle is left. Effect: one log line a second; clients are served again when handles are free."""
    import resource

    with serving(f"golden={BUNDLE}", "--workers", 1) as served, _client(served) as client:
        resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        with ExitStack() as taken:
            for _ in range(100):
                taken.enter_context(socket.create_connection(served.address, timeout=60))
            eventually(lambda: any("accept() out of system resource" in line["event"] for line in served.events))
            time.sleep(2.5)
            assert len(served.events) < 20
        assert client.get("/healthz").status_code == 200
        _check_that_it_works(client)


@pytest.mark.usefixtures("sigint")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.nightly)]
)
def test_a_stop_lets_requests_in_flight_finish(number: signal.Signals, code: int) -> None:
    """Fault: SIGTERM or Ctrl-C to the server. Effect: requests in flight finish; exit code 143 or 130."""
    with serving(f"golden={BUNDLE}", "--workers", 1, "--deadline", 120) as served:  # on a busy machine
        url = served.url
        with _client(served) as client, ThreadPoolExecutor(2) as pool:
            assert client.get("/readyz").status_code == 200
            with client.stream("POST", "/translate/stream", json={"text": LONG, **SLOW}) as stream:
                events = stream.iter_lines()
                assert next(events) == "event: partial"
                answer = pool.submit(_translate, client, [LONG] * 6, **SLOW)
                eventually(lambda: _queue(client) > 3)
                assert served.stop(number) == code
                assert "event: done" in events
            assert answer.result().status_code == 200
            assert len(answer.result().json()["translations"]) == 6
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"{url}/healthz", trust_env=False)
        assert [line["event"] for line in served.events if line["event"] != "request"][-2:] == ["stopping", "stopped"]
        assert not any("Traceback" in str(line) for line in served.events)


@pytest.mark.day
def test_a_stop_while_it_loads() -> None:
    served = Served(BUNDLE, "--workers", 2)
    served.wait("loading")
    assert served.stop() == 143
    assert not any("Traceback" in str(line) for line in served.events)


@pytest.mark.day
def test_reloading_under_load_loses_no_request(tmp_path: Path) -> None:
    """Fault: the server reloads its bundles (SIGHUP) under load. Effect: no request is lost."""
    bundle = Path(shutil.copytree(BUNDLE, tmp_path / "golden"))
    with serving(bundle, "--workers", 1) as served, _client(served) as client, ThreadPoolExecutor(8) as pool:
        stop = time.monotonic() + 60
        done = False

        def ask() -> list[int]:
            statuses = []
            while not done and time.monotonic() < stop:
                statuses.append(_translate(client, SOURCES[:4]).status_code)
            return statuses

        asking = [pool.submit(ask) for _ in range(8)]
        edit_manifest(bundle, lambda tree: tree["search"].update(beam=2))
        served.process.send_signal(signal.SIGHUP)
        served.wait("reloaded")
        assert client.get("/models").json()["models"][0]["beam"] == 2
        (bundle / "encoder.onnx").write_bytes(b"")
        served.process.send_signal(signal.SIGHUP)
        assert "encoder.onnx" in served.wait("reload failed, the old models stay")["reason"]
        done = True
        statuses = [status for future in asking for status in future.result()]
        assert len(statuses) >= len(asking)
        assert set(statuses) == {200}
        assert served.stop() == 143


@pytest.mark.day
@linux
def test_a_reload_of_which_a_worker_dies_answers_nothing_with_the_new_bundle(tmp_path: Path) -> None:
    """Fault: a new worker dies during a reload. Effect: the old models stay, and no answer comes from the new ones."""
    bundle = Path(shutil.copytree(BUNDLE, tmp_path / "golden"))
    with serving(bundle, "--workers", 2) as served, _client(served) as client:
        old = _workers(served)
        edit_manifest(bundle, lambda tree: tree["search"].update(max_length_factor=0.0, max_length_offset=1))
        served.process.send_signal(signal.SIGHUP)
        eventually(lambda: len({*_workers(served)} - {*old}) == 2)
        os.kill(_workers(served)[-1], signal.SIGKILL)
        _check_that_it_works(client)
        assert "exit code -9" in served.wait("reload failed, the old models stay")["reason"]
        for _ in range(4):
            _check_that_it_works(client)
        eventually(lambda: _workers(served) == old)
