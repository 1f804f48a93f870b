"""Where filled catalogs are written: nothing is replaced, and a call that was stopped goes on."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from softsearch.errors import ConfigError
from softsearch.extras.shared.served_files import REVIEW
from softsearch.files import new_file

JOURNAL = ".softsearch-localise"


def output_files(files: Sequence[Path], out: Path) -> list[Path]:
    """Returns the file to write for each catalog: ``out``, or in that folder, with the names in the common folder.

    A name without an ending is that of a folder.
    """
    if len(files) == 1 and out.suffix and not out.is_dir():
        return [out]
    common = os.path.commonpath([path.resolve().parent for path in files])
    return [out / path.resolve().relative_to(common) for path in files]


def digest_of_files(files: Iterable[Path], facts: object = None) -> str:
    """Returns a digest of files and of plain values."""
    digest = sha256(repr(facts).encode())
    for path in files:
        digest.update(repr((str(path), sha256(path.read_bytes()).hexdigest())).encode())
    return digest.hexdigest()


class Outputs:
    """New files of a call.

    In a folder, a journal has a line for each file, written before it: the call, the file's name, and the digests of
    what it is made from and of its content. It is removed with the last one, so that it is there only after a stop;
    the same call then leaves files as they are that are whole and made from the same.

    Args:
        out: a file, or a folder for several.
        paths: the files to write, each with the digest of what it is made from.
        call: a digest of the model, the options and the memory.

    Raises:
        ConfigError: a file exists that the same call did not write.
    """

    def __init__(self, out: Path, paths: Mapping[Path, str], call: str) -> None:
        self._out, self._paths, self._call = out, paths, call
        self._journal = None if [*paths] == [out] else out / JOURNAL
        written = self._read()
        self.complete = set()
        for path, made_from in paths.items():
            for each in (path, path.with_name(path.name + REVIEW)):
                if not each.exists():
                    continue
                before, digest = written.get(each, ("", ""))
                if not each.is_file() or digest != _digest(each.read_bytes()):
                    raise ConfigError(f"{each} exists already; choose another --out, or remove it")
                if each == path and before == made_from:
                    self.complete.add(path)

    def _read(self) -> dict[Path, tuple[str, str]]:
        written: dict[Path, tuple[str, str]] = {}
        if self._journal is None or not self._journal.is_file():
            return written
        for line in self._journal.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # a line that was cut off
                call, name, made_from, digest = json.loads(line)
                if call != self._call:
                    raise ConfigError(
                        f"{self._out} has files of a call that was stopped, with another model, memory or options; "
                        "repeat that call, or choose another --out"
                    )
                written[self._out / name] = made_from, digest
        return written

    def write(self, path: Path, content: bytes, review: bytes = b"") -> None:
        """Writes a file, and the list of what is to be reviewed, if there is one; each is whole or not there."""
        if review:
            self._write(path.with_name(path.name + REVIEW), review, "")
        self._write(path, content, self._paths[path])

    def _write(self, path: Path, content: bytes, made_from: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if self._journal is not None:
            line = json.dumps([self._call, path.relative_to(self._out).as_posix(), made_from, _digest(content)])
            with self._journal.open("a", encoding="utf-8") as file:
                file.write(f"\n{line}\n")  # a line that was cut off ends
                file.flush()
                os.fsync(file.fileno())
        with new_file(path) as new:
            new.write(content)

    def finish(self) -> None:
        """Ends the call: all files are written."""
        if self._journal is not None:
            self._journal.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
