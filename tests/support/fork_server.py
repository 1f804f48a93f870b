"""Server that runs commands in processes forked from one that has imported the lab already.

Importing PyTorch and Lightning takes longer than most of these commands do. All workers of a test session share one. It
reads a request per line of a connection and answers with the exit code and CPU seconds; its client is
``tests.support.commands``.
"""

import atexit
import faulthandler
import gc
import io
import json
import os
import pkgutil
import random
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn

import numpy as np

import softsearch
from tests.support.programs import SESSION

PRELOADED = (  # besides our modules: what these and libraries import when they need it
    "hydra._internal.logging_config",
    "hydra.main",
    "lightning",
    "matplotlib.backends.backend_mixed",
    "matplotlib.backends.backend_svg",
    "matplotlib.pyplot",
    "num2words",
    "optuna.visualization.matplotlib",
    "pandas",
    "sacrebleu.tokenizers.tokenizer_13a",
    "sqlalchemy.dialects.sqlite",
    "torch.utils.serialization.config",
    "torch.utils.tensorboard",
    "wandb.sdk.launch",
)


def serve(listener: socket.socket) -> None:
    """Serves each client in a process of its own, until there are none left; on the CPU, as no GPU survives a fork."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    tempfile.tempdir = os.environ.get(SESSION)  # for folders that imports make, which end with the session
    for name in (*PRELOADED, *(module.name for module in pkgutil.walk_packages(softsearch.__path__, "softsearch."))):
        with suppress(ImportError):  # an extra that is not installed
            if not name.endswith("__main__"):
                import_module(name)
    tempfile.tempdir = None
    with suppress(ImportError):  # W&B's folder, which the first process to end would remove
        media = import_module("wandb.sdk.data_types._private").MEDIA_TMP
        media._finalizer.detach()
        atexit.unregister(media.cleanup)
    warm_up()
    gc.freeze()
    listener.settimeout(1)
    clients = set[int]()
    while True:
        with suppress(TimeoutError):
            connection, _ = listener.accept()
            if not (client := os.fork()):
                listener.close()
                answer(connection)
            clients.add(client)
            connection.close()
        clients -= {client for client in clients if os.waitpid(client, os.WNOHANG)[0]}
        if not clients:
            return


def answer(connection: socket.socket) -> NoReturn:
    """Forks a process for each request of a client until there are no more."""
    connection.setblocking(True)
    with connection.makefile("r") as requests:
        for line in requests:
            child = os.fork()
            if not child:
                run_and_exit(**json.loads(line))
            _, status, used = os.wait4(child, 0)
            code, seconds = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
            connection.sendall(b"%d %f\n" % (code, seconds))
    os._exit(0)


def warm_up() -> None:
    """Spells, composes a config, exports a module and draws, because the first time each imports many modules."""
    import torch
    from matplotlib.figure import Figure
    from tqdm import tqdm

    from softsearch.app.config.composition import composed
    from softsearch.app.config.resolvers import register_resolvers
    from softsearch.data.corpora.spellout import Spellout
    from softsearch.export.graph_parts import quiet

    with tempfile.TemporaryDirectory() as folder:
        Spellout(train_size=400, val_size=20, test_size=20).files(Path(folder))
    register_resolvers()
    composed("train", "experiment=demo", "model=nematus")  # as tests.support.commands.SMALL
    composed("export")
    composed("evaluate")
    figure = Figure()
    figure.subplots().set_title("fonts")
    for form in ("png", "svg"):
        figure.savefig(io.BytesIO(), format=form)
    tqdm.monitor_interval = 0  # its thread would not be in the forked processes
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = {"input": {0: torch.export.Dim("rows")}}
        torch.onnx.export(torch.nn.Linear(2, 2), kwargs={"input": torch.ones(3, 2)}, dynamic_shapes=rows, verbose=False)


def lend_second_process(timeout: float) -> None:
    """Lets Lightning start its second process as a copy of this one, forked before anything has run.

    That is a child of this process too. Where it is not wanted it ends with this process. Further ones are started.
    """
    from lightning.pytorch.strategies.launchers import subprocess_script

    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            request = pipe.read()
        if not request:
            os._exit(0)
        run_and_exit(**json.loads(request), files=[], timeout=timeout)
    os.close(reading)

    lent = False

    def start(command: list[str], env: dict[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
        nonlocal lent
        if lent:
            return subprocess.Popen(command, env=env, cwd=cwd)
        lent = True
        with os.fdopen(writing, "w") as pipe:
            json.dump({"argv": command[1:], "cwd": cwd or str(Path.cwd()), "env": env}, pipe)
        return child_of(command, pid)

    subprocess_script.subprocess = SimpleNamespace(Popen=start)  # type: ignore[attr-defined]


def fork_trainings(timeout: float) -> None:
    """Lets this command fork the trainings that it starts in processes of their own."""
    from hydra.core.global_hydra import GlobalHydra

    from softsearch.extras.shared import train_process

    def start(command: list[str], stdout: IO[bytes], env: dict[str, str], **options: Any) -> subprocess.Popen[bytes]:
        assert env == os.environ
        assert env["PYTHONSAFEPATH"] == "1"
        assert options == {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "start_new_session": True}
        argv = command[command.index("softsearch") :]
        faulthandler.cancel_dump_traceback_later()  # whose thread the new process would wait for
        if pid := os.fork():
            faulthandler.dump_traceback_later(timeout, exit=True)
            return child_of(command, pid)
        os.setsid()
        for number in (1, 2):
            os.dup2(stdout.fileno(), number)
        GlobalHydra.instance().clear()
        run_and_exit(argv, str(Path.cwd()), [os.devnull], timeout, env)

    kept = {name: getattr(subprocess, name) for name in ("DEVNULL", "STDOUT", "TimeoutExpired")}
    train_process.subprocess = SimpleNamespace(Popen=start, **kept)  # type: ignore[attr-defined]


def child_of(command: list[str], pid: int) -> subprocess.Popen[bytes]:
    """A process that was forked, as if it had been started."""
    process = subprocess.Popen.__new__(subprocess.Popen)
    facts: dict[str, Any] = {"args": command, "pid": pid, "returncode": None, "_waitpid_lock": threading.Lock()}
    vars(process).update(facts, stdin=None, stdout=None, stderr=None, _child_created=True)
    return process


def run_and_exit(argv: list[str], cwd: str, files: list[str], timeout: float, env: dict[str, str]) -> NoReturn:
    """Runs the command in this process, and ends it as Python does, except for C++ objects that own lost threads."""
    status = 1
    try:
        os.chdir(cwd)
        for number, file in enumerate(files):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY
            os.dup2(os.open(file, flags, 0o644), number)
        if files and any("ddp" in word or "fsdp" in word for word in argv):
            lend_second_process(timeout)
        fork_trainings(timeout)
        os.environ.clear()
        os.environ.update(env)
        sys.path[1:1] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
        faulthandler.dump_traceback_later(timeout, exit=True)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run where a shell ignores it
        random.seed()
        np.random.seed()  # noqa: NPY002 because no two processes begin in the same state
        sys.argv = argv
        if argv[0].endswith(".py"):
            sys.path[0] = str(Path(argv[0]).absolute().parent)
            runpy.run_path(argv[0], run_name="__main__")
        else:
            runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 because a process of its own would end with it
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
