"""``softsearch doctor``: installed packages, devices, and what commands lack, also without the lab.

``softsearch plugins``: commands and classes from installed packages.
"""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, PackageNotFoundError, requires, version

import softsearch
from softsearch.app.cache import cache_folder
from softsearch.commands import ENTRY_POINTS, every_command, installed
from softsearch.errors import ConfigError
from softsearch.machine import cores
from softsearch.process import how_to_install

_VERSIONS = (
    "numpy",
    "onnxruntime",
    "onnxruntime-gpu",
    "sentencepiece",
    "torch",
    "lightning",
    "hydra-core",
    "omegaconf",
)
_EXTRAS = {  # extra -> what it is for, other than commands
    "": "softsearch",
    "cpu": "",
    "serve": "",
    "paragraphs": "translate --paragraphs",
    "lab": "",
    "sweep": "launcher=joblib and submitit_slurm",
    "table": "Parquet in data=table and translate; text in .zst",
    "hf": "data=huggingface",
    "localise": "data=catalogs",
    "ctranslate2": "export format=ctranslate2, argos",
}
_NEEDS = {"serve": ("cpu",), "paragraphs": ("cpu",)}  # extra -> other extras that it needs
_GIB = 1 << 30


def doctor() -> None:
    """Prints versions, devices, memory, the cache folder, and what each command lacks."""
    for name, text in (*_machine(), *_devices()):
        print(f"{name:<12}{text}")
    print()
    commands = [(command.needs.rpartition(",")[2], command.name) for command in every_command() if command.needs]
    for extra, also in _EXTRAS.items():
        what = "; ".join(filter(None, (", ".join(name for needs, name in commands if needs == extra), also)))
        lacking = {name: list(_missing(name)) for name in (*_NEEDS.get(extra, ()), extra)}
        extras = ",".join(name for name, packages in lacking.items() if packages)
        missing = ", ".join(package for packages in lacking.values() for package in packages)
        state = f"lacks {missing}: {how_to_install(extras)}" if missing else "ready"
        print(f"{extra or 'base':<12}{state}  ({what})")


def _machine() -> Iterator[tuple[str, str]]:
    yield "softsearch", f"{softsearch.__version__} in {os.path.dirname(softsearch.__file__)}"  # noqa: PTH120
    yield "Python", f"{platform.python_version()}, {sys.executable}; {platform.platform()}"
    yield "packages", ", ".join(f"{name} {found}" for name in _VERSIONS if (found := _version(name)))
    if _version("onnxruntime") and _version("onnxruntime-gpu"):
        yield "", "onnxruntime and onnxruntime-gpu cannot be installed together: pip uninstall both, then install one"
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0  # Windows
    memory = f", {total / _GIB:.1f} GiB of memory" * (total > 0)
    yield "CPU", f"{cores()} of {os.cpu_count()} cores for this process{memory}"
    try:
        folder = cache_folder()
    except ConfigError as error:
        yield "cache", str(error)
        return
    place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    writable = "" if os.access(place, os.W_OK) else ", which is not writable: set SOFTSEARCH_CACHE"
    yield "cache", f"{folder}, {shutil.disk_usage(place).free / _GIB:.1f} GiB free{writable}"


def _devices() -> Iterator[tuple[str, str]]:
    if _version("onnxruntime") or _version("onnxruntime-gpu"):
        import onnxruntime

        names = (name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers())
        yield "providers", ", ".join(names)
    if _version("torch"):
        import torch

        gpus = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
        found = [f"{gpu.name} with {gpu.total_memory / _GIB:.0f} GiB" for gpu in gpus]
        found += ["Apple's GPU"] if torch.backends.mps.is_available() else []
        yield "GPUs", ", ".join(found) or "none that PyTorch can use"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _missing(extra: str) -> Iterator[str]:
    """Yields the packages of an extra, or of the base, that are not installed."""
    for requirement in requires("softsearch") or ():
        name, _, marker = requirement.partition(";")
        of = re.search(r"extra == ['\"](\w+)['\"]", marker)
        package = re.match(r"[\w.-]+", name)
        if package is None or (of[1] if of else "") != extra or _version(package[0]):
            continue
        if package[0] != "onnxruntime" or not _version("onnxruntime-gpu"):  # has the same module
            yield package[0]


def plugins() -> None:
    """Prints the commands of installed packages, and the classes that a checkpoint may name."""
    from importlib.metadata import entry_points

    from softsearch.app.config import allowed_classes  # needs the lab
    from softsearch.app.console import echo, print_rows
    from softsearch.runtime.stages.chosen import ENTRY_POINTS as STAGES

    added = _of_others(installed())
    classes = _of_others(allowed_classes.installed_classes())
    if added:
        print_rows(("command", "installed by"), map(_distribution, added, added.values()))
    stages = {point.name: point for point in entry_points(group=STAGES)}
    if stages:
        print_rows(("stage of translations", "installed by"), map(_distribution, stages, stages.values()))
    if classes:
        print_rows(
            ("class or package that checkpoints may name", "installed by"),
            map(_distribution, classes, classes.values()),
        )
    if not added and not classes and not stages:
        echo(
            f"no installed package lists commands under {ENTRY_POINTS}, stages under {STAGES} or classes under "
            f"{allowed_classes.ENTRY_POINTS}"
        )


def _of_others(points: Mapping[str, EntryPoint]) -> dict[str, EntryPoint]:
    return {name: point for name, point in points.items() if not point.value.startswith("softsearch.")}


def _distribution(name: str, point: EntryPoint) -> tuple[str, str]:
    return name, f"{point.dist.name} {point.dist.version}" if point.dist else ""
