"""What src imports is declared in pyproject.toml, in the extra that installs it, at versions that have it."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BASE = ("errors", "option", "search", "text", "runtime", "__init__", "__main__")  # installed without the lab
OPTIONAL = {
    "dev": {*(f"testing/{name}" for name in ("__init__", "contract", "export")), "extras/claims/made_files"},
    "cpu": ("runtime/session", "runtime/graph_session", "runtime/providers"),
    "sweep": ("extras/sweep/tune", *(f"extras/sweep/{name}" for name in ("results", "study", "sweep", "trial"))),
    "ctranslate2": ("extras/formats/ctranslate2",),
    "lora": ("training/lora",),
    "hf": ("data/corpora/huggingface",),
    "table": ("runtime/parquet", "text/corpus", "text/parquet"),
    "localise": ("extras/localise/similar", "extras/localise/tmx", "extras/localise/xliff"),
    "paragraphs": ("runtime/paragraphs",),
    "serve": tuple(
        f"extras/serve/{name}"
        for name in (
            *("access", "admission", "answers", "app", "connection", "dispatcher", "fields", "file_routes", "files"),
            *("gone", "languages", "libretranslate", "main_process", "monitoring", "openapi", "processes", "routes"),
            *("running", "schema", "shared_state", "texts"),
        )
    ),
}
NEEDS = {  # what src uses: the last release without it
    "lightning.pytorch.callbacks.WeightAveraging": "2.5.6",
    "optuna.storages.RetryHeartbeatStaleTrialCallback": "4.99",
}


@pytest.fixture(scope="module")
def declared(repo_root: Path) -> dict[str, dict[str, Requirement]]:
    """By extra, the base being the extra "": distribution to requirement."""
    project = tomllib.loads((repo_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: {canonicalize_name(r.name): r for r in map(Requirement, requirements)}
        for extra, requirements in extras.items()
    }


@cache
def _imports(path: Path) -> list[tuple[str, str]]:
    """Module and name of each import from another distribution."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, alias.name) for alias in node.names]
    ours = {*sys.stdlib_module_names, "softsearch"}
    return [(module, name) for module, name in found if module.partition(".")[0] not in ours]


def _extras(place: str) -> tuple[str, ...]:
    """Those that are installed where a file of src runs."""
    name = place.removeprefix("softsearch/").removesuffix(".py")
    lab = () if name.startswith(BASE) else ("lab",)
    return ("", *lab, *(extra for extra, files in OPTIONAL.items() if name in files))


def test_every_import_of_src_is_declared(repo_root: Path, declared: dict[str, dict[str, Requirement]]) -> None:
    distributions = packages_distributions()
    missing = set()
    files = sorted((repo_root / "src").rglob("*.py"))
    assert len(files) > 20
    for path in files:
        place = path.relative_to(repo_root / "src").as_posix()
        installed = {name for extra in _extras(place) for name in declared[extra]}
        for module, _ in _imports(path):
            names = {canonicalize_name(name) for name in distributions[module.partition(".")[0]]}
            if not names & installed:
                missing.add(f"{place} imports {module}, which no requirement of {_extras(place)} installs")
    assert not missing


def test_the_pinned_versions_are_within_the_declared_ones(
    repo_root: Path, declared: dict[str, dict[str, Requirement]]
) -> None:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", (repo_root / "constraints.txt").read_text(), re.MULTILINE))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    for requirements in declared.values():
        for name, requirement in requirements.items():
            if name == "softsearch":  # the extra all
                continue
            assert name in pinned, f"{name} is in no line of constraints.txt"
            assert requirement.specifier.contains(pinned[name]), f"{requirement}, pinned at {pinned[name]}"


@pytest.mark.parametrize("needed", NEEDS)
def test_declared_versions_have_what_is_used(
    needed: str, repo_root: Path, declared: dict[str, dict[str, Requirement]]
) -> None:
    used = {f"{module}.{name}" for path in (repo_root / "src").rglob("*.py") for module, name in _imports(path)}
    assert needed in used
    (requirement,) = [r for all_ in declared.values() for name, r in all_.items() if name == needed.partition(".")[0]]
    assert not requirement.specifier.contains(NEEDS[needed])


@pytest.mark.parametrize("stealing", ["2.6.2", "2.6.3"])
def test_releases_of_lightning_that_steal_credentials_are_excluded(
    stealing: str, declared: dict[str, dict[str, Requirement]]
) -> None:
    """GHSA-w37p-236h-pfx3."""
    assert not declared["lab"]["lightning"].specifier.contains(stealing)
