"""Prepared data in a folder or an object store, one file for each shard, copied to a host as training needs it.

A shard holds the pairs of ``softsearch.data.sampler.pairs_of_shard``, so that the order of training is that of the
parts. Its file has the offsets of each column (the ids of source and target, and links if there are any), as in
``softsearch.data.preparation.encode.TokenWriter``, and then the ids of each column, up to a multiple of 8 bytes.
"""

import errno
import hashlib
import logging
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from shutil import rmtree
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.data.preparation.cache_folder import PARTS, make_folder, named_folder
from softsearch.data.preparation.encode import read_array
from softsearch.errors import ConfigError, CorpusError, SoftsearchError, parsing
from softsearch.files import unfinished
from softsearch.ranges import AtLeastOne
from softsearch.text.plain_values import parse, read_json

INDEX = "store.json"  # written last
FORMAT = 1
_SHARD = "pairs"  # name of a shard's copy in the cache
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
_log = logging.getLogger(__name__)
Lengths = NDArray[np.int32]
Tokens = tuple[NDArray[np.int64], NDArray[Any]]  # offsets and ids


@dataclass(frozen=True)
class StoredFile:
    """A file of a store.

    Attributes:
        name: its name in the store.
        bytes: its size.
        sha256: its digest.
    """

    name: str
    bytes: AtLeastOne
    sha256: str

    def __post_init__(self) -> None:
        """Refuses names of other folders."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name[:60]!r} is not the name of a file")


@dataclass(frozen=True)
class StoredShard(StoredFile):
    """The file of a shard.

    Attributes:
        pairs: number of pairs.
        ids: number of ids in each column.
        lengths: the tokens of source and target, EOS included, and the number of such pairs: int64 numbers, compressed
            (zlib), in base64. All plans of batches can be made from them.
    """

    pairs: AtLeastOne
    ids: tuple[int, ...]
    lengths: str


@dataclass(frozen=True)
class Contents:
    """The list of what is in a store.

    Attributes:
        format: of the store.
        fingerprint: that of the prepared data.
        types: the type of each column's ids.
        files: models, descriptions, and the text of validation and test.
        splits: the shards of each split; only training may have several.
    """

    format: int
    fingerprint: str
    types: tuple[str, ...]
    files: tuple[StoredFile, ...]
    splits: Mapping[str, tuple[StoredShard, ...]]


@dataclass(frozen=True)
class Store:
    """Prepared data that ``softsearch prepare store=ADDRESS`` has written.

    Args:
        address: a folder, which is read in place, or an address of fsspec, from which files are copied.
    """

    address: str

    @staticmethod
    def is_at(root: str | Path) -> bool:
        """Tells whether data.root names a store: any address, or a folder with its index."""
        return "://" in str(root) or (Path(root) / INDEX).is_file()

    @property
    def is_remote(self) -> bool:
        """Whether files are copied before they are read."""
        return "://" in self.address

    @cached_property
    def contents(self) -> Contents:
        """The list of its files.

        Raises:
            ConfigError: the address cannot be opened.
            CorpusError: it has no such list, or a damaged one.
        """
        text = self.read(INDEX)
        try:
            found = read_json(text)
            if isinstance(found, dict) and found.get("format") != FORMAT:
                raise ValueError(f"its format is {str(found.get('format'))[:20]}, this version reads {FORMAT}")
            contents: Contents = parse(found, Contents)
        except ValueError as error:
            raise CorpusError(f"{self.address}/{INDEX}: {error}; {self._again}") from error
        return contents

    @property
    def _again(self) -> str:
        return f"write it again with softsearch prepare store={self.address}"

    def read(self, name: str) -> bytes:
        """Returns the content of a small file; raises as ``contents``."""
        advice = f"{self._again}, or check the address, the permissions and the network"
        if not self.is_remote:
            with parsing(f"{self.address}/{name}", CorpusError, advice):
                return (Path(self.address) / name).read_bytes()
        system, root = file_system(self.address)
        with parsing(f"{self.address}/{name}", CorpusError, advice):
            content: bytes = system.cat_file(f"{root}/{name}")
            return content

    def folder(self, cache_dir: Path) -> Path:
        """Returns the folder with all files but the shards, in ``cache_dir`` if they are copied.

        Raises:
            CorpusError: a file is missing or damaged, or cannot be copied.
        """
        if not self.is_remote:
            return Path(self.address)
        digest = hashlib.sha256(repr(self.contents.files).encode()).hexdigest()[:16]
        folder = cache_dir / "prepared" / f"{self.contents.fingerprint}.{digest}"

        def write(new: Path) -> None:
            for file in self.contents.files:
                self._copy(file, new / file.name)

        make_folder(folder, write)
        return folder

    def place(self, shard: StoredShard, cache_dir: Path) -> Path:
        """Returns the path that a shard's file has once it is copied."""
        if not self.is_remote:
            return Path(self.address) / shard.name
        return named_folder(cache_dir / PARTS, "shard", f"{shard.name} {shard.sha256}") / _SHARD

    def fetch(self, shard: StoredShard, cache_dir: Path) -> Path:
        """Copies a shard, unless it is there; of several processes of a host one copies, and the others wait.

        Raises:
            CorpusError: it is missing, cut short or damaged, cannot be copied, or the disk is full.
        """
        path = self.place(shard, cache_dir)
        if self.is_remote:
            make_folder(path.parent, lambda folder: self._copy(shard, folder / _SHARD))
        elif not path.is_file() or path.stat().st_size != shard.bytes:
            found = f"{path.stat().st_size:,} bytes" if path.is_file() else "no such file"
            raise CorpusError(f"{path}: found {found}, expected {shard.bytes:,} bytes; {self._again}")
        return path

    def _copy(self, file: StoredFile, target: Path) -> None:
        system, root = file_system(self.address)
        where = f"{self.address}/{file.name}"
        try:
            with parsing(where, CorpusError, f"check the network, and that the file is there, or {self._again}"):
                system.get_file(f"{root}/{file.name}", str(target))
        except CorpusError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in _FULL:
                raise cause from None  # of this disk, which make_folder names
            raise
        if (size := target.stat().st_size) != file.bytes:
            raise CorpusError(f"{where}: found {size:,} bytes, expected {file.bytes:,}; {self._again}")
        with target.open("rb") as copy:
            if (digest := hashlib.file_digest(copy, "sha256").hexdigest()) != file.sha256:
                raise CorpusError(
                    f"{where} is damaged: it has SHA-256 {digest}, expected {file.sha256}; remove it there, and "
                    f"{self._again}"
                )


class Shards:
    """The shards of a split, opened when they are read. Of those that are copied, at most three are kept.

    These are the one before, of which loaders may still make batches, that in training, and the next one, which is
    copied meanwhile.
    """

    def __init__(self, store: Store, split: str, cache_dir: Path) -> None:
        self.store, self.shards, self.cache_dir = store, store.contents.splits[split], cache_dir
        self._opened = dict[int, list[Tokens]]()  # the last two
        self._before: int | None = None

    def __len__(self) -> int:
        """Number of shards."""
        return len(self.shards)

    @property
    def pairs(self) -> list[int]:
        """Number of pairs of each."""
        return [shard.pairs for shard in self.shards]

    @property
    def types(self) -> list[np.dtype[Any]]:
        """The type of each column's ids: sources, targets and, of training, links if there are any."""
        return [*map(np.dtype, self.store.contents.types[: len(self.shards[0].ids)])]

    def column(self, number: int) -> Sequence[Tokens]:
        """Returns a column of all shards."""
        return _Column(self, number)

    def lengths(self, number: int) -> tuple[Lengths, Lengths]:
        """Returns the lengths of the sources and targets of a shard, sorted, without reading it."""
        import base64
        import zlib

        rows = np.frombuffer(zlib.decompress(base64.b64decode(self.shards[number].lengths)), np.int64).reshape(-1, 3)
        src, tgt = (np.repeat(rows[:, side].astype(np.int32), rows[:, 2]) for side in (0, 1))
        return src, tgt

    def open(self, number: int) -> list[Tokens]:
        """Returns the columns of a shard; raises as ``Store.fetch``."""
        if number not in self._opened:
            shard = self.shards[number]
            try:
                data = read_array(self.store.fetch(shard, self.cache_dir), np.uint8)
            except FileNotFoundError:  # another process has just removed it
                data = read_array(self.store.fetch(shard, self.cache_dir), np.uint8)
            columns = [*self._columns(data, shard)]
            self._opened = dict([*self._opened.items()][-1:]) | {number: columns}
        return self._opened[number]

    def _columns(self, data: NDArray[np.uint8], shard: StoredShard) -> Iterator[Tokens]:
        width = 8 * (shard.pairs + 1)
        begin = width * len(shard.ids)
        for number, (count, kind) in enumerate(zip(shard.ids, self.types, strict=True)):
            end = begin + count * kind.itemsize
            yield data[number * width : (number + 1) * width].view(np.int64), data[begin:end].view(kind)
            begin = end + -end % 8

    def turn(self, number: int, following: int) -> None:
        """Removes the copies of shards that are not needed now, and begins to copy the following one."""
        if not self.store.is_remote:
            return
        kept = {number, following, self._before}
        self._before = number
        for other, shard in enumerate(self.shards):
            if other not in kept:
                _remove(self.store.place(shard, self.cache_dir).parent)
        if following != number:
            Thread(target=partial(self._copy_ahead, self.shards[following]), daemon=True).start()

    def _copy_ahead(self, shard: StoredShard) -> None:
        try:
            self.store.fetch(shard, self.cache_dir)
        except SoftsearchError as error:
            _log.warning("%s; it is copied again when training needs it", error)


class _Column(Sequence[Tokens]):
    """A column of all shards."""

    def __init__(self, shards: Shards, number: int) -> None:
        self._shards, self._number = shards, number

    def __len__(self) -> int:
        return len(self._shards)

    def __getitem__(self, shard: Any) -> Any:
        return self._shards.open(range(len(self))[shard])[self._number]


def _remove(folder: Path) -> None:
    """Removes a folder as a whole, so that no other process finds a part of it."""
    if folder.exists():
        place = Path(tempfile.mkdtemp(prefix=unfinished(folder.name), dir=folder.parent))
        with suppress(FileNotFoundError):  # another process has removed it
            folder.rename(place / folder.name)
        rmtree(place, ignore_errors=True)


def file_system(address: str) -> tuple[Any, str]:
    """Returns fsspec's file system of an address, and the path in it.

    Raises:
        ConfigError: there is no such kind of address, or its package is not installed.
    """
    import fsspec  # few runs need it

    try:
        system, path = fsspec.core.url_to_fs(address)
    except ImportError as error:
        package = getattr(error.__cause__, "name", None) or "its package"
        raise ConfigError(f"{address} needs {package}, which is not installed: pip install {package}") from error
    except ValueError as error:
        raise ConfigError(
            f"{address} cannot be opened ({error}); expected a folder, or an address such as s3://BUCKET/FOLDER or "
            "gs://BUCKET/FOLDER"
        ) from error
    return system, path
