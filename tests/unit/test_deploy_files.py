"""The files of docs/deploy are valid and agree with the server: its options, ports, routes and deadline."""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from configparser import RawConfigParser
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from softsearch.extras.serve.routes import router
from softsearch.extras.serve.running import _GRACE, _LAST_WORDS
from softsearch.extras.serve.settings import add_serve_options
from softsearch.extras.serve.workers import _CLOSE_SECONDS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
ROUTES = {route.path for route in router.routes}
STOP = _GRACE + _LAST_WORDS + _CLOSE_SECONDS  # seconds on top of the deadline


def serve(command: list[str]) -> argparse.Namespace:
    """The options of a command line of ``softsearch serve``; fails if it would refuse them."""
    program, name, *arguments = command
    assert (Path(program).name, name) == ("softsearch", "serve")
    parser = argparse.ArgumentParser()
    add_serve_options(parser)
    return parser.parse_args(arguments)


def instructions() -> list[tuple[str, str]]:
    """Instruction and value of the lines of the Dockerfile, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


@pytest.fixture(scope="module")
def dockerfile() -> dict[str, str]:
    return dict(instructions())


@pytest.fixture(scope="module")
def unit() -> RawConfigParser:
    parser = RawConfigParser(strict=False, comment_prefixes="#", delimiters="=")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / "softsearch.service").read_text(encoding="utf-8"))
    return parser


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    return {document["kind"]: document for document in documents}


@pytest.fixture(scope="module")
def pod(resources: dict[str, Any]) -> Any:
    return resources["Deployment"]["spec"]["template"]["spec"]


def test_hadolint_has_nothing_to_say() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_serves_on_the_port_that_it_exposes(dockerfile: dict[str, str]) -> None:
    options = serve([*json.loads(dockerfile["ENTRYPOINT"]), *json.loads(dockerfile["CMD"])])
    assert (options.host, options.port, options.bundles) == ("0.0.0.0", int(dockerfile["EXPOSE"]), ["/bundle"])
    user, group = map(int, dockerfile["USER"].split(":"))
    assert 0 not in (user, group)


def test_the_image_installs_extras_that_exist_under_the_pinned_versions(dockerfile: dict[str, str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"softsearch-\*\.whl\)\[([\w,]+)\]", dockerfile["RUN"])
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    (python,) = re.findall(r"^python:(3\.\d+)-slim", dockerfile["FROM"])
    assert f"Programming Language :: Python :: {python}" in project["classifiers"]
    mounted = re.findall(r"source=([^,]+),target=(\S+)", dockerfile["RUN"])
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    assert [f"!{source}" for source, _ in mounted] == ["!dist", "!constraints.txt"]
    assert sent == ["*", "!constraints.txt", "!dist/softsearch-*.whl"]
    assert all(f"{target}/" in dockerfile["RUN"] or f"-c {target} " in dockerfile["RUN"] for _, target in mounted)


@pytest.fixture
def health() -> Iterator[dict[str, Any]]:
    """A server that answers with ``status`` and notes ``paths``."""
    asked: dict[str, Any] = {"status": 200, "paths": []}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked["paths"].append(self.path)
            self.send_response(asked["status"])
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        asked["port"] = server.server_port
        yield asked
        server.shutdown()
        thread.join()


def test_the_health_check_of_the_image(dockerfile: dict[str, str], health: dict[str, Any]) -> None:
    command = json.loads(dockerfile["HEALTHCHECK"].partition("CMD ")[2])
    port = dockerfile["EXPOSE"]
    assert (command[:2], command[2].count(port)) == (["python", "-c"], 1)
    check = [sys.executable, "-c", command[2].replace(port, str(health["port"]))]
    environment = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    codes = []
    for health_status in (200, 503):
        health["status"] = health_status
        codes.append(subprocess.run(check, env=environment, check=False, capture_output=True).returncode)
    assert codes == [0, 1]
    assert set(health["paths"]) == {"/healthz"} <= ROUTES


def test_systemd_takes_the_unit(unit: RawConfigParser, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (DEPLOY / "softsearch.service").read_text(encoding="utf-8")
    program = shlex.split(unit["Service"]["ExecStart"])[0]
    (tmp_path / "softsearch.service").write_text(text.replace(program, "/bin/true"), encoding="utf-8")
    verify = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "softsearch.service")]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_serves_reloads_and_stops_as_the_server_does(unit: RawConfigParser) -> None:
    service = unit["Service"]
    options = serve(shlex.split(service["ExecStart"]))
    assert options.bundles == ["/srv/softsearch/demo"]
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert int(service["TimeoutStopSec"]) > options.deadline + STOP
    assert service["SuccessExitStatus"] == "143"
    # SIGTERM must reach no worker: its requests would be lost.
    assert service["KillMode"] == "mixed"
    # What a bundle's folder, an open port and ONNX Runtime need.
    assert service["ProtectHome"] == "yes"
    assert not options.bundles[0].startswith(("/home", "/root", "/tmp"))
    assert {"AF_INET", "AF_INET6"} <= set(service["RestrictAddressFamilies"].split())
    assert "ProcSubset" not in service


def test_the_pod_runs_the_image(pod: Any, dockerfile: dict[str, str]) -> None:
    (container,) = pod["containers"]
    options = serve([*json.loads(dockerfile["ENTRYPOINT"]), *container["args"]])
    assert options.bundles == ["demo=/bundle"]
    assert str(options.workers) == container["resources"]["requests"]["cpu"]
    assert [port["containerPort"] for port in container["ports"]] == [options.port]
    security = pod["securityContext"]
    assert f"{security['runAsUser']}:{security['runAsGroup']}" == dockerfile["USER"]
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > pause + options.deadline + STOP


def test_the_probes_and_metrics_are_routes_of_the_server(resources: dict[str, Any], pod: Any) -> None:
    (container,) = pod["containers"]
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/readyz",
        "readinessProbe": "/readyz",
        "livenessProbe": "/healthz",
    }
    (named,) = container["ports"]
    (outside,) = resources["Service"]["spec"]["ports"]
    assert {probe["port"] for probe in probes.values()} | {outside["targetPort"]} == {named["name"]}
    annotations = resources["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(named["containerPort"])
    assert {"/readyz", "/healthz", annotations["prometheus.io/path"]} <= ROUTES


def test_the_resources_of_the_manifest_find_each_other(resources: dict[str, Any]) -> None:
    assert set(resources) == {"Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
    deployment = resources["Deployment"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert resources["Service"]["spec"]["selector"] == labels
    assert resources["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    target = resources["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
    assert "replicas" not in deployment["spec"]  # they would undo the autoscaler's at every `kubectl apply`


def test_workers_have_one_thread_each(dockerfile: dict[str, str], unit: RawConfigParser) -> None:
    assert dockerfile["ENV"] == unit["Service"]["Environment"] == "OMP_NUM_THREADS=1"
