"""examples/ray_serve.py answers as one translator does, with two replicas on one machine."""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from softsearch import Translator
from tests.support.commands import ROOT
from tests.support.programs import run_python

pytestmark = [pytest.mark.day, pytest.mark.multiprocess, pytest.mark.nightly]
BUNDLE = ROOT / "tests" / "golden" / "bundle"
LOCAL_CLUSTER = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
import httpx, ray
from ray import serve
from ray_serve import application

ray.init(address="local", num_cpus=2, object_store_memory=80 << 20, include_dashboard=False)
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(application({"bundle": sys.argv[1], "replicas": "2"}))
bodies = json.load(sys.stdin)
with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
    with ThreadPoolExecutor(16) as clients:
        answers = list(clients.map(lambda body: client.post("/translate", json=body), bodies))
with open("answers.json", "w") as output:
    json.dump([(answer.status_code, answer.json()) for answer in answers], output)
serve.shutdown()
ray.shutdown()
"""


def processes_with(variable: str) -> list[int]:
    """The processes that inherited an environment variable."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:  # it ended, or is another user's
            continue
        if variable.encode() in variables:
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="leaked processes are found in /proc")
def test_two_replicas_translate_and_leave_nothing_behind(tmp_path: Path) -> None:
    sources = (ROOT / "tests" / "golden" / "sources.txt").read_text(encoding="utf-8").splitlines()
    bodies = [{"text": text, "beam": 1 + number % 2} for number in range(4) for text in sources]
    bodies += [{"text": sources, "beam": 2, "n_best": 2, "alignments": True}]
    refused = [{"text": ["one", "one " * 20_000]}, {"text": "one", "beam": 2, "n_best": 3}, {"text": "one", "beam": 0}]
    with TemporaryDirectory(prefix="ray") as short:  # Ray's sockets are there, and their paths must be short
        ray = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": short}
        ray["PYTHONPATH"] = str(ROOT / "examples")
        given = json.dumps([*bodies, *refused])
        done = run_python("-c", LOCAL_CLUSTER, BUNDLE, cwd=tmp_path, text=given, **ray)
        assert done.returncode == 0, done.stderr[-3000:]
        logs = [path.read_text() for path in Path(short).glob("**/session_latest/logs/serve/replica_*.log")]
        until = time.monotonic() + 20
        while (left := processes_with(f"RAY_TMPDIR={short}")) and time.monotonic() < until:
            time.sleep(0.1)
    assert left == []
    assert [log.count("POST /translate 200") > 0 for log in logs] == [True, True]

    answers = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    assert [status for status, _ in answers] == [200] * len(bodies) + [422] * len(refused)
    translator = Translator(BUNDLE, threads=1)
    for body, (_, answer) in zip(bodies, answers, strict=False):
        lines = body["text"] if isinstance(body["text"], list) else [body["text"]]
        expected = translator.translate(lines, **{key: value for key, value in body.items() if key != "text"})
        found = [[hypothesis["text"] for hypothesis in best["n_best"]] for best in answer["translations"]]
        assert found == [[hypothesis.text for hypothesis in best.n_best] for best in expected]
    assert answers[-3][1]["detail"].startswith("line 2 has 80000 characters")
    weights = answers[len(bodies) - 1][1]["translations"][0]["n_best"][1]
    assert len(weights["alignments"]) == len(weights["tgt_pieces"])
