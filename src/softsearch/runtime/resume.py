"""Resuming an interrupted translation: a record of its progress and its options.

Output files grow as ``NAME.partial`` and get their names when complete. After each block the record, a JSON file next
to them, stores how many input lines are translated, and how many bytes of the partial files they take. So a process may
be killed at any time; anything it wrote after that is cut off.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path

from softsearch.errors import InputError
from softsearch.files import new_file
from softsearch.runtime.output import Output, append_output, file_name_in_errors, refuse_packed
from softsearch.text.plain_values import read_json

_CHUNK = 1 << 20  # bytes


@dataclass(frozen=True)
class _Record:
    settings: dict[str, str]  # everything the translations depend on except the input, for people
    lines: int = 0  # translated input lines
    sha256: str = ""  # hash of these lines and their prefixes
    sizes: Sequence[int] = ()  # bytes of the partial files that hold their translations
    hashes: Sequence[str] = ()  # SHA-256 of these bytes

    @classmethod
    def load(cls, path: Path) -> "_Record":
        try:
            tree = read_json(path)
            record = cls(**tree)
            sound = all(isinstance(number, int) and number >= 0 for number in (tree["lines"], *tree["sizes"]))
            if not sound or not isinstance(tree["settings"], dict):
                raise ValueError("a value is of the wrong type")
            if len(tree["sizes"]) != len(tree["hashes"]) or bool(tree["lines"]) != bool(tree["sizes"]):
                raise ValueError("its lines, sizes and hashes contradict each other")
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"{path} cannot be read ({error}); expected the record that --resume writes; remove "
                f"{path.stem} to start again"
            ) from error
        return record

    def save(self, path: Path) -> None:
        with file_name_in_errors(str(path)), new_file(path) as file:
            file.write(json.dumps(asdict(self)).encode())


class _Partial:
    """A partial output file and the running hash of its recorded part."""

    def __init__(self, path: Path) -> None:
        self.path, self.size, self.digest = path, 0, hashlib.sha256()

    def read(self, size: int) -> None:
        """Extends the hash to the first ``size`` bytes."""
        with self.path.open("rb") as file:
            file.seek(self.size)
            while self.size < size and (chunk := file.read(min(size - self.size, _CHUNK))):
                self.digest.update(chunk)
                self.size += len(chunk)


class ResumeState:
    """Output files that continue where they were cut off."""

    def __init__(self, outputs: Sequence[Output], partials: Sequence[_Partial], path: Path, record: _Record) -> None:
        self.outputs = outputs
        self._partials, self._path, self._record = partials, path, record
        self._lines, self._hash = 0, hashlib.sha256()

    def skip(self, lines: Sequence[str], prefixes: Sequence[str] | None) -> int:
        """Returns how many of the next input lines, with their prefixes, are already translated.

        Raises:
            InputError: the lines up to here differ from those translated.
        """
        done = self._record.lines
        translated = min(len(lines), max(0, done - self._lines))
        self._read(lines[:translated], prefixes)
        if translated and self._lines == done and self._hash.hexdigest() != self._record.sha256:
            raise InputError(
                f"the first {done} lines of the input, or their prefixes, differ from those translated; "
                f"give the same files, or remove {self._partials[0].path} to start again"
            )
        return translated

    def save(self, lines: Sequence[str], prefixes: Sequence[str] | None) -> None:
        """Records that the next lines are also translated and written."""
        self._read(lines, prefixes)
        for output in self.outputs:
            output.sync()
        for partial in self._partials:
            partial.read(partial.path.stat().st_size)
        sizes, hashes = zip(*((partial.size, partial.digest.hexdigest()) for partial in self._partials), strict=True)
        _Record(self._record.settings, self._lines, self._hash.hexdigest(), sizes, hashes).save(self._path)

    def check_end(self) -> None:
        """Refuses an input that ends before the last line translated earlier."""
        if self._lines < self._record.lines:
            raise InputError(
                f"{self._record.lines} lines are already translated, but the input has only {self._lines}; is it "
                "another file?"
            )

    def _read(self, lines: Sequence[str], prefixes: Sequence[str] | None) -> None:
        self._lines += len(lines)
        for line, prefix in zip(lines, repeat("") if prefixes is None else prefixes, strict=False):
            self._hash.update(f"{line}\n{prefix}\n".encode())


@contextmanager
def resume_outputs(output: Path | None, alignments: Path | None, settings: Mapping[str, str]) -> Iterator[ResumeState]:
    """Opens partial files, which stay if anything fails, and get their names when complete.

    Args:
        output: the file of the translations.
        alignments: the file of the alignments, if there is one.
        settings: everything the translations depend on except the input, for people.

    Raises:
        InputError: there is no output file, it is already complete or cannot be written, or its partial file was begun
            with other settings or by another program, or is being written by another process.
    """
    if output is None:
        raise InputError("--resume continues a file; give --output FILE too")
    files = [output] if alignments is None else [output, alignments]
    for path in files:
        refuse_packed(path)
    partials = [_Partial(path.with_name(f"{path.name}.partial")) for path in files]
    settings = dict(settings) | ({"--alignments": alignments.name} if alignments else {})
    path = output.with_name(f"{partials[0].path.name}.json")
    with file_name_in_errors(str(output)):
        record = None
        if partials[0].path.exists():
            with append_output(partials[0].path):  # refuses a file that another process is writing
                record = _Record.load(path)
        begun = record is not None and alignments is not None and record.settings.get("--alignments") == alignments.name
        if begun and files[-1].exists() and not partials[-1].path.exists():
            files[-1].replace(partials[-1].path)  # if killed between the renames below
        for complete in filter(Path.exists, files):
            raise InputError(f"{complete} is complete; remove it to translate again, or leave out --resume")
        record = _continued(record, partials, settings)
        record.save(path)
    with ExitStack() as stack:
        outputs = [stack.enter_context(append_output(partial.path)) for partial in partials]
        resumed = ResumeState(outputs, partials, path, record)
        yield resumed
        resumed.check_end()
    with file_name_in_errors(str(output)):
        for partial, complete in reversed([*zip(partials, files, strict=True)]):  # the translations come last
            partial.path.replace(complete)
        path.unlink()


def _continued(record: _Record | None, partials: Sequence[_Partial], settings: dict[str, str]) -> _Record:
    """Cuts the partial files to their recorded sizes; returns the record to continue from."""
    if record is None or not record.lines:
        for partial in partials:
            partial.path.unlink(missing_ok=True)
        return _Record(settings)
    old, first = record.settings, partials[0].path
    if old != settings:
        changes = [
            f"{name} was {old.get(name, 'not given')} and is now {settings.get(name, 'not given')}"
            for name in {**old, **settings}
            if old.get(name) != settings.get(name)
        ]
        raise InputError(
            f"{first} was begun with other settings: {', '.join(changes)}; give the same ones, or remove "
            f"{first} to start again"
        )
    if len(record.sizes) != len(partials):
        raise InputError(
            f"{first}.json describes {len(record.sizes)} files, expected {len(partials)}; remove {first} to start again"
        )
    for partial, size, sha256 in zip(partials, record.sizes, record.hashes, strict=True):
        path, found = partial.path, partial.path.stat().st_size if partial.path.exists() else 0
        if found < size:
            raise InputError(
                f"{path} has {found} bytes, expected at least the {size} written; remove {first} to start again"
            )
        partial.read(size)
        if partial.digest.hexdigest() != sha256:
            raise InputError(
                f"the first {size} bytes of {path} were changed; restore them, or remove {first} to start again"
            )
        os.truncate(path, size)
    return record
