"""Builds a release and checks it as its users will get it: make release

    python -m tests.release [python3.11 python3.12 python3.13]

Builds sdist and wheel twice and compares them, checks metadata and contents, installs the wheel into a fresh
environment of each interpreter, translates there with the golden bundle, and writes the list of what is installed
with it (SBOM, CycloneDX) and the notes of the version from CHANGELOG.md. All of it goes to dist/.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile

import softsearch

ROOT = Path(__file__).resolve().parents[1]
DIST, GOLDEN = ROOT / "dist", ROOT / "tests" / "golden"
NEEDED = (
    *("softsearch/py.typed", "softsearch/configs/train.yaml", "softsearch/template/pyproject.toml"),
    *("softsearch/extras/serve/web/assets/index.html", "softsearch/extras/serve/web/assets/LICENSES.txt"),
)


def run(*command: str | Path, cwd: Path = ROOT, text: str | None = None, **variables: str) -> str:
    """Runs a command and returns its output; ends the release with it if it fails."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        input=text,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> dict[str, str]:
    """Builds both distributions; returns the SHA-256 of each by name."""
    time = run("git", "log", "-1", "--format=%ct").strip()  # of the files in the archives
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, SOURCE_DATE_EPOCH=time)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def check_contents(wheel: Path) -> None:
    """Ends the release if the wheel lacks something, or holds what is not softsearch's."""
    names = ZipFile(wheel).namelist()
    missing = [name for name in NEEDED if name not in names]
    strangers = [
        name for name in names if not re.match(rf"softsearch(-{re.escape(softsearch.__version__)}\.dist-info)?/", name)
    ]
    if missing or strangers:
        raise SystemExit(f"{wheel.name}: missing: {missing}; should not be there: {strangers}")


def check_installed(python: str, wheel: Path, folder: Path) -> Path:
    """Installs the wheel with the extra cpu, checks and uses it; returns the environment's interpreter."""
    run(python, "-m", "venv", folder)
    installed = folder / "bin" / "python"
    run(installed, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[cpu]")
    run(installed, "-m", "pip", "check")
    sources, expected = ((GOLDEN / name).read_text(encoding="utf-8") for name in ("sources.txt", "translations.txt"))
    if (found := run(folder / "bin" / "softsearch", "translate", GOLDEN / "bundle", text=sources)) != expected:
        raise SystemExit(f"{python}: the golden bundle translates to\n{found}\ninstead of\n{expected}")
    return installed


def notes(changelog: str, version: str) -> str:
    """The section of a version."""
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)
    found = [section for section in sections if section.startswith(f"[{version}]")]
    if len(found) != 1:
        raise SystemExit(
            f"CHANGELOG.md has {len(found)} sections [{version}], expected one: the version's heading and date"
        )
    return found[0].partition("\n")[2].strip() + "\n"


def release(pythons: Sequence[str]) -> Iterator[str]:
    """Makes dist/; yields what was done."""
    text = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), softsearch.__version__)
    shutil.rmtree(DIST, ignore_errors=True)
    sums = build(DIST)
    with tempfile.TemporaryDirectory() as scratch:
        if (again := build(Path(scratch) / "again")) != sums:
            raise SystemExit(f"two builds differ: {sums}, {again}")
        yield f"built twice, equal byte for byte: {', '.join(sums)}"
        (wheel,) = DIST.glob("*.whl")
        check_contents(wheel)
        run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))
        yield "metadata and contents are right"
        for python in pythons:
            installed = check_installed(python, wheel, Path(scratch) / python.replace("/", "_"))
            version = run(installed, "--version").strip()
            yield f"installed and translated with {version}"
        run(
            sys.executable, "-m", "cyclonedx_py", "environment", installed, "--of", "JSON", "-o", DIST / "sbom.cdx.json"
        )
    (DIST / "NOTES.md").write_text(text, encoding="utf-8")
    (DIST / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()), encoding="utf-8")
    yield f"dist: {', '.join(sorted(path.name for path in DIST.iterdir()))}"


if __name__ == "__main__":
    found = sys.argv[1:] or [name for minor in (11, 12, 13) if shutil.which(name := f"python3.{minor}")]
    for line in release(found):
        print(line, flush=True)
