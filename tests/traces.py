"""Graphs of traced modules, kept in ``.pytest_cache/traces`` for all processes and later runs of the tests."""

import hashlib
import inspect
import io
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".pytest_cache" / "traces"
SOURCES = ("export", "models", "search", "text/vocabulary.py")  # of softsearch: what a trace runs
MAX_GRAPHS = 400  # of about 100 kB


def keep_traces() -> None:
    """Makes ``torch.onnx.export`` in this process look for the graph in ``FOLDER`` first.

    Two modules have one graph if they are equal in classes, attributes and weights, are traced with equal examples, and
    neither their source nor the tracer has changed.
    """
    import onnx
    import torch

    trace = torch.onnx.export

    def export(module: torch.nn.Module, **options: Any) -> Any:
        examples, rest = options["kwargs"], {key: value for key, value in options.items() if key != "kwargs"}
        classes = {type(part) for part in module.modules()}
        if {name.__module__.partition(".")[0] for name in classes} - {"softsearch", "tests", "torch"}:
            return trace(module, **options)  # a test's own package: another test's may have the same name
        torch.save((module, examples, repr(rest)), content := io.BytesIO())
        digest = hashlib.sha256(content.getbuffer())
        for file in sorted({inspect.getfile(name) for name in classes if name.__module__.startswith("tests.")}):
            digest.update(_digest(file))
        digest.update(_sources_and_tracer())
        kept = FOLDER / f"{digest.hexdigest()}.onnx"
        if not kept.exists():
            program = trace(module, **options)
            FOLDER.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=FOLDER) as place:
                onnx.save(program.model_proto, f"{place}/new.onnx")
                os.replace(f"{place}/new.onnx", kept)
        os.utime(kept)
        return SimpleNamespace(model_proto=onnx.load(kept))

    torch.onnx.export = export  # type: ignore[assignment]


def remove_old_traces() -> None:
    """Removes the graphs that were used the longest ago."""
    for graph in sorted(FOLDER.glob("*.onnx"), key=lambda path: path.stat().st_mtime)[:-MAX_GRAPHS]:
        graph.unlink()


def _digest(file: str | Path) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


@cache
def _sources_and_tracer() -> bytes:
    """A digest of the code that a trace runs: ours, and the versions of the libraries'."""
    import softsearch

    package = Path(softsearch.__file__).parent
    files = [file for name in SOURCES for file in [package / name, *(package / name).rglob("*.py")] if file.is_file()]
    versions = repr([version(name) for name in ("torch", "onnx", "onnxscript")])
    return hashlib.sha256(b"".join([versions.encode(), *map(_digest, sorted(files))])).digest()
