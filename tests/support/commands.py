"""Client that runs commands of the lab, and options for a run of seconds."""

import atexit
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from filelock import FileLock

from tests.costs import FORKED
from tests.support.programs import SESSION

ROOT = Path(__file__).parents[2]
SMALL = (
    "experiment=demo", "model=nematus",  # for those that leave the experiment out
    "data.train_size=300", "data.short_size=0", "data.val_size=20", "data.test_size=20", "model.embeddings.dim=16",
    "model.encoder.hidden_dim=16", "model.decoder.hidden_dim=16", "model.decoder.attention.dim=16",
    "model.decoder.readout.dim=16", "tokenizer.vocab_size=240", "trainer=cpu", "trainer.max_steps=8",
    "trainer.val_check_interval=4", "trainer.log_every_n_steps=2", "callbacks.curves=null",
    "search.max_length_factor=1",
)  # fmt: skip


def run(script: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a script of src/ or a command of ``softsearch`` as a user does, with more variables of the environment."""
    words = [str(ROOT / "src" / script)] if script.endswith(".py") else ["softsearch", script]
    return SERVER.run([*words, *options], env=environment)


class ForkServer:
    """Client of fork_server.py, which the first client of a session starts; runs one command at a time.

    Args:
        python: the interpreter, of this environment or of one in which the lab is installed too.
    """

    def __init__(self, python: str = sys.executable) -> None:
        self.python = python
        self.connection: socket.socket | None = None

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        stdin: str = os.devnull,
        stdout: str = "",
        env: Mapping[str, str] | None = None,
        timeout: float = 240,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command as ``python argv...`` does and returns its exit code and output.

        Args:
            argv: a script, or the name of a module, and its arguments.
            cwd: its folder; None for the current one.
            stdin: the file that it reads.
            stdout: the file that it writes; empty to return the output.
            env: variables that it has besides those of this process.
            timeout: in seconds; a command that takes longer ends with a traceback.
        """
        connection = self.connection = self.connection or self._connect()
        with TemporaryDirectory() as folder:
            output, errors = Path(folder, "stdout"), Path(folder, "stderr")
            request = {
                "argv": list(argv),
                "cwd": str(cwd or Path.cwd()),
                "files": [stdin, stdout or str(output), str(errors)],
                "timeout": timeout,
                "env": os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | dict(env or {}),
            }
            try:
                connection.sendall(json.dumps(request).encode() + b"\n")
                code, seconds = connection.recv(64).split()
            except BaseException:  # such as pytest's timeout: the next command must not get this one's answer
                self.stop()
                raise
            texts = (path.read_text(encoding="utf-8") if path.exists() else "" for path in (output, errors))
            FORKED.seconds += float(seconds)
            return subprocess.CompletedProcess(argv, int(code), *texts)

    def _connect(self) -> socket.socket:
        """A connection to the session's server of this interpreter, or to a new one."""
        place = os.path.join(os.environ[SESSION], hashlib.sha256(self.python.encode()).hexdigest()[:8])  # noqa: PTH118 short
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))  # where src may be
        connection = socket.socket(socket.AF_UNIX)
        with FileLock(f"{place}.lock"):
            try:
                connection.connect(place)
            except (FileNotFoundError, ConnectionRefusedError):
                Path(place).unlink(missing_ok=True)
                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind(place)
                    listener.listen()
                    server = subprocess.Popen(
                        [self.python, str(ROOT / "tests" / "support" / "fork_server.py"), str(listener.fileno())],
                        pass_fds=[listener.fileno()],
                        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path},
                    )
                connection.connect(place)
                atexit.register(server.wait)
                atexit.register(self.stop)
        return connection

    def stop(self) -> None:
        """Leaves the server, which ends with its last client."""
        if self.connection:
            self.connection.close()
            self.connection = None


SERVER = ForkServer()


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder that ``make`` fills, for the first of pytest's workers that asks for it; the others wait."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    done = folder.with_name(f"{name}.done")
    with FileLock(folder.with_name(f"{name}.lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def awkward_lines() -> tuple[bytes, str]:
    """The golden sources with marks, blank lines and lone CRs between them, and their translations, for examples."""
    golden = ROOT / "tests" / "golden"
    sources, translations = (
        (golden / name).read_text(encoding="utf-8").splitlines() for name in ("sources.txt", "translations.txt")
    )
    first, second, *others = sources
    text = f"\ufeff{first}\r\n\n{second.replace(' ', chr(13))}\n \t\x0b\u200b\u2028\n" + "\n".join(others)
    return text.encode(), "\n".join([translations[0], "", translations[1], "", *translations[2:], ""])
