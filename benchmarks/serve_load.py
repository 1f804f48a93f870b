"""Load test of `softsearch serve`: 200 clients on keep-alive connections, beside offline translation on the same cores.

The clients are wrk's (https://github.com/wg/wrk, a package of most systems): one thread of C, so that they take next to
nothing of the cores that the server has; what they take is printed. Each sends its next request as soon as it has an
answer. Rounds of the server and of ``Translator.translate`` over the same sentences take turns, and ratios are taken
with the offline rounds before and after, also for a second of CPU, which other load of the machine changes less. With
``--queue 32`` the queue is too small: nearly all answers are then 503.

    python benchmarks/serve_load.py exports/NAME test.en
    python benchmarks/serve_load.py exports/NAME test.en --queue 32 --rounds 1
    python benchmarks/serve_load.py exports/NAME test.en --clients 400 --processes 1 2    # servers take turns
"""

import argparse
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from importlib.metadata import version
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from softsearch import Translator
from softsearch.app import describe_machine
from softsearch.machine import cores
from softsearch.text import read_lines

RSS_EVERY = 5  # seconds
REPORTS = 1.5  # seconds in which each of several HTTP processes has told the others its metrics
PROCESS = re.compile(r'process="\d+",?')
# wrk counts what is neither 2xx nor 3xx; the server's metrics tell which statuses these are.
SCRIPT = """
local requests, number = {}, 0
function init(arguments)
  local headers = {["Content-Type"] = "application/json"}
  for body in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format("POST", "/translate", headers, body)
  end
end
function request()
  number = number % #requests + 1
  return requests[number]
end
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"p50": %f, "p95": %f, "p99": %f, "max": %f, "seconds": %f, "requests": %d, "refused": %d, "broken": %d}',
    latency:percentile(50) / 1e6, latency:percentile(95) / 1e6, latency:percentile(99) / 1e6, latency.max / 1e6,
    summary.duration / 1e6, summary.requests, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
"""


class Round(NamedTuple):
    """What one round of load measured."""

    answered: float  # requests/s with status 200
    translated: float  # sentences/s, those of requests that the end cut off included
    per_cpu: float  # sentences for each second of CPU that the server used
    overhead: float  # CPU seconds of the HTTP process for each request
    busy: float  # share of the time in which a worker has a batch
    latency: dict[str, float]  # seconds, of all answers
    statuses: dict[str, int]
    retry_after: str  # seconds, of one 503 in the middle of the load; empty if there was none
    broken: int  # connections
    cpu: dict[str, float]  # cores in use
    rss: list[int]  # bytes, of all processes of the server, every RSS_EVERY seconds
    batch: float  # sentences, mean
    waited: float  # seconds of a sentence in the queue, mean


def processes(root: int) -> list[int]:
    """A process and all below it."""
    found = [root]
    for pid in found:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found


def rss(pids: Sequence[int]) -> int:
    """The sum of their resident memory; pages that they share count several times."""
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return sum(pages) * resource.getpagesize()


def cpu_seconds(pids: Sequence[int]) -> float:
    """The sum of their times in user and kernel mode."""
    times = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids)
    return sum(int(user) + int(system) for user, system in times) / os.sysconf("SC_CLK_TCK")


class Server:
    """``softsearch serve`` in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], port: int, count: int) -> None:
        self.process, self.port, self.count = process, port, count  # of HTTP processes

    def get(self, path: str, body: str | None = None) -> tuple[int, dict[str, str], str]:
        """Status, headers and body of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", path, body and body.encode(), headers)
        response = connection.getresponse()
        answer = response.status, dict(response.getheaders()), response.read().decode()
        connection.close()
        return answer

    def metrics(self) -> dict[str, float]:
        """All metrics by name and labels, those of several HTTP processes added up."""
        found: Counter[str] = Counter()
        for line in self.get("/metrics")[2].splitlines():
            name, _, value = line.rpartition(" ")
            if line[0] != "#":
                found[PROCESS.sub("", name).removesuffix("{}")] += float(value)
        return found

    def http_processes(self) -> list[int]:
        """The main process, and those that it started for HTTP if there are several."""
        main = self.process.pid
        if self.count == 1:
            return [main]
        return [main, *map(int, Path(f"/proc/{main}/task/{main}/children").read_text().split())]

    def load(self, folder: Path, bodies: Sequence[str], clients: int, seconds: int, *, overload: bool) -> Round:
        """Sends bodies, again and again, and measures; with an overload also asks what a 503 says."""
        (folder / "script.lua").write_text(SCRIPT)
        (folder / "bodies").write_text("\n".join(bodies) + "\n")
        command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "120s", "-s", str(folder / "script.lua")]
        main = self.http_processes()
        workers = [pid for pid in processes(self.process.pid) if pid not in main]
        time.sleep(REPORTS)
        before = self.metrics()
        clocks = [cpu_seconds(main), cpu_seconds(workers), _own_cpu_seconds()]
        memory: list[int] = []
        retry_after = ""

        def sample() -> None:
            nonlocal retry_after
            memory.append(rss([*main, *workers]))
            if overload:
                status, headers, _ = self.get("/translate", bodies[0])
                retry_after = headers["retry-after"] if status == 503 else retry_after

        with _every(RSS_EVERY, sample):
            done = subprocess.run(
                [*command, f"http://127.0.0.1:{self.port}", "--", str(folder / "bodies")],
                capture_output=True,
                text=True,
                check=True,
            )
        found = json.loads(done.stdout[done.stdout.rindex("{") :])
        used = [cpu_seconds(main), cpu_seconds(workers), _own_cpu_seconds()]
        time.sleep(REPORTS)
        after = self.metrics()
        growth = {name: value - before.get(name, 0) for name, value in after.items()}
        status = re.compile(r'softsearch_requests_total\{route="/translate",status="(\d+)"\}')
        batches = sum(value for name, value in growth.items() if name.startswith("softsearch_batch_lines_count"))
        lines = sum(value for name, value in growth.items() if name.startswith("softsearch_batch_lines_sum"))
        waited = sum(value for name, value in growth.items() if name.startswith("softsearch_waiting_seconds_sum"))
        worked = sum(value for name, value in growth.items() if name.startswith("softsearch_batch_seconds_sum"))
        spent = [now - then for then, now in zip(clocks, used, strict=True)]
        return Round(
            answered=(found["requests"] - found["refused"]) / found["seconds"],
            translated=lines / found["seconds"],
            per_cpu=lines / (spent[0] + spent[1]),
            overhead=spent[0] / found["requests"],
            busy=worked / found["seconds"] / after["softsearch_workers"],
            latency={name: found[name] for name in ("p50", "p95", "p99", "max")},
            statuses={m[1]: int(value) for name, value in growth.items() if value and (m := status.fullmatch(name))},
            retry_after=retry_after,
            broken=found["broken"],
            cpu={
                name: seconds / found["seconds"]
                for name, seconds in zip(("HTTP process", "workers", "clients"), spent, strict=True)
            },
            rss=memory,
            batch=lines / max(1, batches),
            waited=waited / max(1, lines),
        )


def _own_cpu_seconds() -> float:
    """Of the processes that this one has started and seen the end of."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def _every(seconds: float, call: Callable[[], None]) -> Iterator[None]:
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            call()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def serve(bundle: Path, *options: str) -> Iterator[Server]:
    """Starts a server on a free port, waits until it is ready, and stops it."""
    command = [sys.executable, "-m", "softsearch", "serve", f"model={bundle}", "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    port, count = 0, 1
    for line in process.stderr:
        event = json.loads(line) if line.startswith("{") else {"event": line}
        port = event.get("port", port)
        if event["event"] == "ready":
            count = event.get("processes", 1)
            break
    else:
        raise SystemExit(f"softsearch serve ended with exit status {process.wait()}")
    log = threading.Thread(target=process.stderr.read)  # or the server would wait for a reader
    log.start()
    try:
        yield Server(process, port, count)
    finally:
        process.terminate()
        process.wait()
        log.join()


def check(server: Server, translator: Translator, lines: list[str]) -> None:
    """Refuses to measure a server that translates otherwise than the translator."""
    for line in lines:
        status, _, text = server.get("/translate", json.dumps({"text": line}))
        expected = translator.translate([line])[0].text
        if status != 200 or json.loads(text)["translations"][0]["n_best"][0]["text"] != expected:
            raise SystemExit(f"{line!r} is answered with {status} {text[:200]}, expected {expected!r}")


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("sources", type=Path, help="sentences, one a line (plain, gzip or xz)")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 16], help="sentences of a request")
    parser.add_argument("--processes", type=int, nargs="+", help="compares servers with so many HTTP processes each")
    parser.add_argument("--queue", type=int, help="the server's; by default all that the clients send have room")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = parse_options()
    lines = list(islice((line for line in read_lines(options.sources) if line.strip()), options.sentences))
    random.Random(1).shuffle(lines)
    names = ("onnxruntime", "uvicorn", "fastapi")
    print(f"{describe_machine()}, {', '.join(f'{name} {version(name)}' for name in names)}")
    translator = Translator(options.bundle)
    queue = options.queue or options.clients * max(options.sizes)
    limits = ("--queue", str(queue), "--max-sentences", str(min(queue, max(options.sizes))))
    if options.processes:
        bodies = [json.dumps({"text": line}) for line in lines]
        compare(options.bundle, bodies, options, *limits)
        return
    with serve(options.bundle, *limits) as server, TemporaryDirectory() as folder:
        check(server, translator, lines[:20])
        for size in options.sizes:
            measure(server, Path(folder), translator, lines, size, options)


def compare(bundle: Path, bodies: list[str], options: argparse.Namespace, *limits: str) -> None:
    """Measures servers with different numbers of HTTP processes in turns, and prints requests/s and their ratio."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        workers = str(max(cores(), *options.processes))
        servers = [
            stack.enter_context(serve(bundle, *limits, "--workers", workers, "--processes", str(number)))
            for number in options.processes
        ]
        rounds = [
            [server.load(folder, bodies, options.clients, options.seconds, overload=False) for server in servers]
            for _ in range(options.rounds)
        ]
    print(f"1 sentence a request, {options.clients} clients, rounds of {options.seconds} s, {cores()} cores")
    for number, found in zip(options.processes, zip(*rounds, strict=True), strict=True):
        _row(f"{number} HTTP, requests/s", [each.answered for each in found], "{:,.0f}")
        _row("    CPU ms of HTTP a request", [1000 * each.overhead for each in found], "{:.2f}")
        _row("    cores in use, HTTP", [each.cpu["HTTP process"] for each in found], "{:.2f}")
        _row("    sentences of a batch", [each.batch for each in found], "{:.1f}")
        statuses = sum((Counter(each.statuses) for each in found), Counter())
        print(f"    statuses {dict(statuses)}, {sum(each.broken for each in found)} broken connections")
    _row("ratio, last to first", [found[-1].answered / found[0].answered for found in rounds], "{:.2f}")


def measure(
    server: Server, folder: Path, translator: Translator, lines: list[str], size: int, options: argparse.Namespace
) -> None:
    """Measures and prints one size of requests."""
    texts = [lines[start : start + size] for start in range(0, len(lines) - size + 1, size)]
    bodies = [json.dumps({"text": text[0] if size == 1 else text}) for text in texts]

    def offline() -> tuple[float, float]:
        start, cpu = time.perf_counter(), time.process_time()
        translator.translate(lines)
        return len(lines) / (time.perf_counter() - start), len(lines) / (time.process_time() - cpu)

    offline()
    speeds, rounds = [offline()], []
    for _ in range(options.rounds):
        rounds.append(server.load(folder, bodies, options.clients, options.seconds, overload=options.queue is not None))
        speeds.append(offline())
    beside = [((before[0] + after[0]) / 2, (before[1] + after[1]) / 2) for before, after in pairwise(speeds)]
    sentences = f"{size} sentence{'s' * (size > 1)} a request"
    print(f"{sentences}, {options.clients} clients, {options.rounds} rounds of {options.seconds} s, {cores()} cores")
    _row("offline, sentences/s", [speed for speed, _ in speeds], "{:,.0f}")
    _row("server, sentences/s", [found.translated for found in rounds], "{:,.0f}")
    _row("server, requests/s with 200", [found.answered for found in rounds], "{:,.0f}")
    pairs = list(zip(rounds, beside, strict=True))
    _row("share of offline", [found.translated / speed for found, (speed, _) in pairs], "{:.2f}")
    _row("the same for a second of CPU", [found.per_cpu / per_cpu for found, (_, per_cpu) in pairs], "{:.2f}")
    for name in rounds[0].latency:
        _row(f"latency {name}, ms", [1000 * found.latency[name] for found in rounds], "{:,.0f}")
    _row("in the queue, mean, ms", [1000 * found.waited for found in rounds], "{:,.0f}")
    _row("sentences of a batch, mean", [found.batch for found in rounds], "{:.1f}")
    _row("workers have a batch", [found.busy for found in rounds], "{:.2f}")
    _row("HTTP, CPU ms for a request", [1000 * found.overhead for found in rounds], "{:.2f}")
    for name in rounds[0].cpu:
        _row(f"cores in use, {name}", [found.cpu[name] for found in rounds], "{:.2f}")
    statuses = sorted({status for found in rounds for status in found.statuses})
    counts = ", ".join(f"{status}: {sum(found.statuses.get(status, 0) for found in rounds):,}" for status in statuses)
    print(f"    statuses, 499 being clients that left at the end: {counts}")
    if retry := {found.retry_after for found in rounds} - {""}:
        print(f"    Retry-After of 503: {', '.join(sorted(retry))} s")
    memory = [f"{value / 1e6:,.0f}" for found in rounds for value in found.rss]
    print(f"    RSS of all processes every {RSS_EVERY} s, MB: {' '.join(memory)}", flush=True)
    broken = sum(found.broken for found in rounds)
    if broken or not {*statuses} <= {"200", "499", "503"}:
        raise SystemExit(f"{broken} connections broke, statuses {counts}; expected none, and nothing but 200 and 503")


def _row(name: str, values: Sequence[float], form: str) -> None:
    least, most = form.format(min(values)), form.format(max(values))
    print(f"    {name:31} {form.format(statistics.median(values)):>8} ({least} to {most})")


if __name__ == "__main__":
    main()
