"""Writing of prepared data as a store: one file for each shard, in the order of training."""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.data.corpora.prepared_folder import DESCRIPTION, text_files
from softsearch.data.dataset import TokenStore
from softsearch.data.preparation.encode import SIDES
from softsearch.data.preparation.inputs import Progress
from softsearch.data.preparation.prepared import REPORT, PreparedData
from softsearch.data.preparation.store import FORMAT, INDEX, Contents, Store, StoredFile, StoredShard, file_system
from softsearch.data.sampler import Indices, pairs_of_shard, shards_of
from softsearch.errors import ConfigError, CorpusError, SoftsearchError, summarize
from softsearch.text.plain_values import parse, read_json

_CHUNK = 1 << 18  # pairs written together


def write_store(prepared: PreparedData, address: str, progress: Progress) -> None:
    """Writes a store to a folder or an address of fsspec. Shards that are there stay, so that a second call goes on.

    Raises:
        ConfigError: the address cannot be opened or has other data, or the data are feature vectors.
        CorpusError: a file cannot be written.
    """
    if prepared.features:
        raise ConfigError("store is set, but a store has no feature vectors; set store=null, and copy the files")
    writer = _Writer(prepared, Store(address), *file_system(address), progress)
    try:
        writer.write()
    except SoftsearchError:
        raise
    except Exception as error:  # those of all kinds of file systems
        raise CorpusError(
            f"cannot write store={address} ({summarize(error)}); check the address, the space there, the permissions "
            "and the network, and give the same command again: what is written stays"
        ) from error


@dataclass(frozen=True)
class _Writer:
    prepared: PreparedData
    store: Store
    system: Any
    root: str
    progress: Progress

    def write(self) -> None:
        self.system.makedirs(self.root, exist_ok=True)
        written, splits, types = self._written(), dict[str, tuple[StoredShard, ...]](), tuple[str, ...]()
        for split in self.prepared.splits:
            dataset, shards = self.prepared.dataset(split), list[StoredShard]()
            columns = [dataset.src, dataset.tgt, *([dataset.links.numbers] if dataset.links else [])]
            types = types or tuple(column.dtype.name for column in columns)
            count = shards_of(len(dataset)) if split == "train" else 1
            for number in range(count):
                self.progress(f"writing {split}", sum(shard.pairs for shard in shards), len(dataset))
                name, pairs = f"{split}-{number:05}", pairs_of_shard(len(dataset), number, count)
                shards.append(self._before(name, written) or self._write_shard(name, columns, pairs))
            splits[split] = tuple(shards)
        files = tuple(map(self._write_file, self._names()))
        contents = Contents(FORMAT, self.prepared.fingerprint, types, files, splits)
        self._write_json(INDEX, asdict(contents))
        for shard in (shard for shards in splits.values() for shard in shards):
            if self._exists(note := f"{shard.name}.json"):
                self.system.rm_file(f"{self.root}/{note}")

    def _written(self) -> dict[str, StoredShard]:
        """Returns the shards of a store that is complete."""
        if not self._exists(INDEX):
            return {}
        contents = self.store.contents
        self._check(contents.fingerprint)
        return {shard.name: shard for shards in contents.splits.values() for shard in shards}

    def _before(self, name: str, written: Mapping[str, StoredShard]) -> StoredShard | None:
        """Returns a shard that was written before, as a whole."""
        shard = written.get(name)
        if shard is None and self._exists(note := f"{name}.json"):
            noted = read_json(self.store.read(note))
            self._check(noted["fingerprint"])
            shard = parse(noted["shard"], StoredShard)
        is_there = shard is not None and self._exists(name) and self.system.size(f"{self.root}/{name}") == shard.bytes
        return shard if is_there else None

    def _check(self, found: str) -> None:
        if found != self.prepared.fingerprint:
            raise ConfigError(
                f"store={self.store.address} has other data: found {found}, expected {self.prepared.fingerprint}; "
                "choose another address, or remove what is there"
            )

    def _exists(self, name: str) -> bool:
        return bool(self.system.exists(f"{self.root}/{name}"))

    def _names(self) -> list[str]:
        """The names of all files but the shards, which are also those in the folder of prepared data."""
        folder = self.prepared.folder
        texts = [path for split in self.prepared.splits for path in text_files(folder, split) if path.is_file()]
        return [*(f"{side}.model" for side in SIDES), DESCRIPTION, REPORT, *(path.name for path in texts)]

    def _write_file(self, name: str) -> StoredFile:
        content = (self.prepared.folder / name).read_bytes()
        self.system.pipe_file(f"{self.root}/{name}", content)
        return StoredFile(name, len(content), hashlib.sha256(content).hexdigest())

    def _write_json(self, name: str, value: object) -> None:
        self.system.pipe_file(f"{self.root}/{name}", json.dumps(value, indent=1).encode())

    def _write_shard(self, name: str, columns: Sequence[TokenStore], pairs: Indices) -> StoredShard:
        digest, size = hashlib.sha256(), 0
        with self.system.open(f"{self.root}/{name}", "wb") as file:
            for block in _content(columns, pairs):
                file.write(block)
                digest.update(block)
                size += len(block)
        ids = tuple(sum(int(lengths.sum()) for lengths in _lengths(column, pairs)) for column in columns)
        shard = StoredShard(name, size, digest.hexdigest(), len(pairs), ids, _distribution(columns, pairs))
        self._write_json(f"{name}.json", {"fingerprint": self.prepared.fingerprint, "shard": asdict(shard)})
        return shard


def _content(columns: Sequence[TokenStore], pairs: Indices) -> Iterator[bytes]:
    """Yields the bytes of a shard's file."""
    for column in columns:
        end = np.zeros(1, np.int64)
        yield end.tobytes()
        for lengths in _lengths(column, pairs):
            ends = end + np.cumsum(lengths, dtype=np.int64)
            yield ends.tobytes()
            end = ends[-1:]
    for column in columns:
        size = 0
        for begin in range(0, len(pairs), _CHUNK):
            block = column.gather(pairs[begin : begin + _CHUNK]).tobytes()
            size += len(block)
            yield block
        yield bytes(-size % 8)


def _lengths(column: TokenStore, pairs: Indices) -> Iterator[NDArray[np.int32]]:
    """Yields the number of ids of some pairs at a time."""
    for begin in range(0, len(pairs), _CHUNK):
        yield column.lengths(pairs[begin : begin + _CHUNK]) - 1  # without EOS


def _distribution(columns: Sequence[TokenStore], pairs: Indices) -> str:
    """Returns the lengths of both sides and their numbers of pairs, as ``StoredShard`` has them."""
    src, tgt = (column.lengths(pairs).astype(np.int64) for column in columns[:2])
    keys, counts = np.unique(src << 32 | tgt, return_counts=True)
    rows = np.stack([keys >> 32, keys & 0xFFFFFFFF, counts], axis=1).astype(np.int64)
    return base64.b64encode(zlib.compress(rows.tobytes())).decode()
