"""A training whose two processes are started one by one, on one host and on two with networks of their own."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.commands import ROOT, SERVER, ForkServer
from tests.support.faulty_trainings import INJECTED, TWO_CPU_PROCESSES, arguments
from tests.support.small_run import assert_same_bits
from tests.support.small_runs import assert_validate_as_trained

pytestmark = pytest.mark.day

NODES = "trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=1", "trainer.num_nodes=2", "test=2"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
DEFAULTS = "trainer.max_steps=4", "trainer.val_check_interval=2", "name=x"


def by_hand(rank: int, port: int) -> dict[str, str]:
    return {"NODE_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def by_slurm(rank: int, port: int) -> dict[str, str]:
    ranks = dict.fromkeys(("SLURM_PROCID", "SLURM_NODEID"), str(rank))
    counts = {"SLURM_NTASKS": "2", "SLURM_NNODES": "2", "SLURM_NTASKS_PER_NODE": "1"}
    job = {"SLURM_JOB_ID": "4242", "SLURM_JOB_NAME": "train", "SLURM_STEP_ID": "0", "SLURM_NODELIST": "localhost"}
    return {**ranks, **counts, **job, "SLURM_LOCALID": "0", "MASTER_PORT": str(port)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def start_two(
    folder: Path, *environments: Mapping[str, str], options: tuple[str, ...] = (), faults: str = "{}"
) -> list[subprocess.CompletedProcess[str]]:
    """Starts the command with each environment, in different seconds, in the folder of the runs."""
    words = [word for word in arguments(folder, "run", *NODES, *DEFAULTS) if not word.startswith("hydra.")]
    words += options
    variables = {"PYTHONPATH": str(ROOT), "FAULTS": faults}
    with ExitStack() as stack:
        threads, other = stack.enter_context(ThreadPoolExecutor()), ForkServer()
        stack.callback(other.stop)
        started = []
        for server, environment in zip((SERVER, other), environments, strict=True):
            env = variables | dict(environment)
            started.append(threads.submit(server.run, [INJECTED, *words], cwd=folder, env=env))
            time.sleep(1.2)
        return [future.result() for future in started]


def only_run(folder: Path) -> Path:
    (run,) = (folder / "logs" / "train").iterdir()
    return run


@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
def test_processes_started_by_hand_train_in_the_folder_of_the_first(tmp_path: Path) -> None:
    port = free_port()
    first, second = start_two(tmp_path, by_hand(0, port), by_hand(1, port))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    run = only_run(tmp_path)
    assert "val/bleu" in json.loads((run / "metrics.json").read_text())
    assert load_checkpoint(run / "checkpoints" / "last.ckpt")["ParallelDataModule"]["world_size"] == 2


@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
def test_slurms_job_finds_its_folder_again_and_names_a_lost_process(tmp_path: Path) -> None:
    port = free_port()
    second, first = start_two(tmp_path, by_slurm(1, port), by_slurm(0, port))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert only_run(tmp_path).name == "slurm-4242"
    more, lost = ("trainer.max_steps=10",), json.dumps({1: {6: "exit"}})
    first, second = start_two(tmp_path, by_slurm(0, port), by_slurm(1, port), options=more, faults=lost)
    assert "continuing from" in first.stderr
    assert (first.returncode, second.returncode) == (1, 7), first.stderr + second.stderr
    assert "Traceback" not in first.stderr
    assert first.stderr.splitlines()[-1].startswith("error: process 0 lost the connection to another process")
    assert only_run(tmp_path).name == "slurm-4242"


class Nodes:
    """Two nodes: each has a network, a name and an address, and sees the same disk.

    Args:
        folder: the current one of what is started on a node.
        stack: ends the nodes.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.stack = stack
        hosts = folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n" + "".join(f"10.71.0.{n + 1} node{n}\n" for n in range(2)))
        self.owners = []
        for node in range(2):
            begin = f"hostname node{node} && mount --bind {hosts} /etc/hosts && ip link set lo up && echo up"
            words = ["unshare", "--net", "--uts", "--mount", "sh", "-c", f"{begin} && exec sleep 900"]
            owner = stack.enter_context(subprocess.Popen(words, stdout=PIPE, stderr=STDOUT, text=True))
            stack.callback(owner.kill)
            stack.callback(self.kill, node)
            assert owner.stdout is not None
            if (said := owner.stdout.readline()) != "up\n":
                pytest.skip(f"needs to make network namespaces, which root may: {said}")
            self.owners.append(owner)
        first, second = (str(owner.pid) for owner in self.owners)
        link = ["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", second]
        subprocess.run(["nsenter", "--net", "--target", first, *link], check=True)
        self.places = [
            ["nsenter", "--net", "--uts", "--mount", "--target", str(owner.pid), "env", "--chdir", str(folder)]
            for owner in self.owners
        ]
        for node, place in enumerate(self.places):
            up = f"ip address add 10.71.0.{node + 1}/24 dev eth0 && ip link set eth0 up"
            subprocess.run([*place, "sh", "-c", up], check=True)

    def start(self, *commands: Sequence[str]) -> list[subprocess.Popen[str]]:
        """Starts a command on each node."""
        env = os.environ | ONE_THREAD
        each = ([*place, *command] for place, command in zip(self.places, commands, strict=True))
        started = [subprocess.Popen(words, env=env, stdout=PIPE, stderr=STDOUT, text=True) for words in each]
        entered = [self.stack.enter_context(process) for process in started]
        self.stack.callback(lambda: [self.kill(node) for node in range(2)])  # before they are waited for
        return entered

    def kill(self, node: int) -> None:
        """Kills what runs on a node; its network stays, and tells the other one."""
        if node < len(self.owners):
            owner = self.owners[node].pid
            network = Path(f"/proc/{owner}/ns/net").readlink()
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if (process / "ns" / "net").readlink() == network and process.name != str(owner):
                        os.kill(int(process.name), signal.SIGKILL)


SRUN = """#!/bin/bash
# srun's part: a task on each node, with the variables of SLURM's manual
export SLURM_STEP_ID=0
for node in 0 1; do
    place=PLACE_$node
    SLURM_PROCID=$node SLURM_NODEID=$node SLURM_LOCALID=0 ${!place} "$@" &
done
wait -n && wait -n
"""


@pytest.mark.nightly  # by day the two above start, lose and continue such runs
@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
@pytest.mark.timeout(1200)
@pytest.mark.skipif(shutil.which("unshare") is None or shutil.which("ip") is None, reason="needs util-linux, iproute2")
def test_the_commands_of_the_page_train_on_two_nodes_and_survive_the_loss_of_one(tmp_path: Path) -> None:
    """SLURM's script trains without a break, torchrun loses a node and continues: the weights are the same bits."""
    page = (ROOT / "docs" / "many-hosts.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```sh\n(#!/bin/bash\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (torchrun,) = re.findall(r"^torchrun .*$", page, re.MULTILINE)
    words = [w for w in arguments(tmp_path, "run", "trainer.accelerator=cpu") if not w.startswith("hydra.")]
    words += ["trainer.max_steps=30", "trainer.val_check_interval=2", "test=false", "name=x"]
    script, torchrun = (
        text.replace("=4", "=1").replace("resume=auto", f"resume=auto {shlex.join(words)}")
        for text in (script, torchrun)
    )
    run = tmp_path / "run"
    torchrun = torchrun.replace("HOST", "node0").replace("=RUN", f"={run}")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "srun").write_text(SRUN)
    (programs / "srun").chmod(0o755)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | ONE_THREAD | {"PATH": path}
    with ExitStack() as stack:
        nodes = Nodes(tmp_path, stack)
        count, each = (
            int(re.findall(rf"^#SBATCH .*--{name}=(\d+)", script, re.MULTILINE)[0])
            for name in ("nodes", "ntasks-per-node")
        )
        job = {"SLURM_JOB_ID": "4242", "SLURM_JOB_NAME": "train.sh", "SLURM_NODELIST": "node[0-1]"}
        counts = {"SLURM_NNODES": count, "SLURM_NTASKS_PER_NODE": each, "SLURM_NTASKS": count * each}
        places = {f"PLACE_{node}": shlex.join(place) for node, place in enumerate(nodes.places)}
        env_of_job = env | job | {name: str(value) for name, value in counts.items()} | places
        done = subprocess.run(
            ["bash", "-c", script], env=env_of_job, cwd=tmp_path, stdout=PIPE, stderr=STDOUT, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
        whole = tmp_path / "logs" / "train" / "slurm-4242"

        command = ["env", f"PATH={path}", *shlex.split(torchrun)]
        first, second = nodes.start(command, command)
        while not (run / "checkpoints" / "last.ckpt").exists():
            assert first.poll() is None, first.communicate()[0]
            time.sleep(0.01)
        nodes.kill(1)
        output, _ = first.communicate(timeout=120)
        assert (first.returncode, second.wait()) == (1, -signal.SIGKILL), output
        assert "error: process 0 lost the connection to another process" in output
        assert 2 <= load_checkpoint(run / "checkpoints" / "last.ckpt")["global_step"] < 30
        for process in nodes.start(command, command):
            output, _ = process.communicate()
            assert process.returncode == 0, output
    assert_same_bits(run / "checkpoints" / "last.ckpt", whole / "checkpoints" / "last.ckpt")
    assert_validate_as_trained(tmp_path, run, f"ckpt={run}/checkpoints/last.ckpt")


@pytest.mark.nightly
@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("unshare") is None or shutil.which("ip") is None, reason="needs util-linux, iproute2")
def test_nodes_whose_network_fails_silently_end_after_the_timeout_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "many-hosts.md").read_text(encoding="utf-8")
    (timeout,) = re.findall(r"^`trainer\.strategy='(.*timeout: .*)'`\.$", page, re.MULTILINE)
    strategy = f"trainer.strategy={timeout.replace('minutes: 5', 'seconds: 20')}"
    words = [*arguments(tmp_path, "run", *NODES), *DEFAULTS, "trainer.max_steps=10000", "resume=auto", strategy]
    run = tmp_path / "run"
    with ExitStack() as stack:
        nodes = Nodes(tmp_path, stack)
        train = ["env", "MASTER_ADDR=node0", "MASTER_PORT=29500", sys.executable, "-m", "softsearch", "train", *words]
        started = nodes.start(*(["env", f"NODE_RANK={node}", *train] for node in range(2)))
        while not (run / "checkpoints" / "last.ckpt").exists():
            assert started[0].poll() is None, started[0].communicate()[0]
            time.sleep(0.1)
        subprocess.run([*nodes.places[1], "ip", "link", "set", "eth0", "down"], check=True)
        for process in started:
            output, _ = process.communicate(timeout=120)
            assert process.returncode == 1, output
            assert re.search(r"error: process \d lost the connection to another process.*resume=auto", output)
