"""Prepared data in a store: the same batches as from the parts, few copies at a time, and clear errors."""

import errno
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.implementations.local import LocalFileSystem

from softsearch.data import sampler
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.prepared_folder import PreparedFolder, describe
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.preparation.prepare import prepare
from softsearch.data.preparation.prepared import PreparedData
from softsearch.data.preparation.store import INDEX, Store
from softsearch.data.preparation.store_writing import write_store
from softsearch.data.sampler import Batching
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.corpus import read_lines
from softsearch.text.filters import Filters
from tests.support.pairs import TRAINER, write_pair
from tests.unit.data.test_datamodule import rank_of

Order = list[list[Any]]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sampler, "_BLOCK", 4)
    monkeypatch.setattr(sampler, "_SHARD", 20)
    yield
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def source(tmp_path: Path) -> Parallel:
    """Of two corpora, with weights, repeated pairs and links: about 125 pairs in an epoch."""
    pairs = [write_pair(tmp_path, name, size, seed) for seed, (name, size) in enumerate((("a", 70), ("b", 25)))]
    return Parallel(
        train=pairs,
        val=write_pair(tmp_path, "val", 9, seed=7),
        filters=Filters(duplicates=True),
        weights=[1, 2.5],
        links="auto",
    )


def data_of(source: Any, cache: Path, *, rank: int = 0, **batching: Any) -> ParallelDataModule:
    batches = Batching(**{"tokens": 60, "canonical": 2, **batching})
    data = ParallelDataModule(source=source, tokenizer=TRAINER, batching=batches, cache_dir=cache, seed=3)
    data.trainer = rank_of(2, rank)  # type: ignore[assignment]
    return data


def order(data: ParallelDataModule, epochs: int = 2, each: Callable[[], object] = lambda: None) -> Order:
    """All that is in the batches of some epochs, and of validation."""
    found = list[Any]()
    for _ in range(epochs):
        for batch in data.train_dataloader():
            assert batch.links is not None
            found.append([tensor.tolist() for tensor in (batch.src_tokens, batch.tgt_tokens, batch.links)])
            data.batches_trained += 1
            each()
    return [*found, *([batch.src_tokens.tolist()] for batch in data.val_dataloader())]


def write(source: Parallel, cache: Path, address: str) -> PreparedData:
    prepared = prepare(source, TRAINER, cache)
    write_store(prepared, address, lambda *_: None)
    return prepared


def copies(cache: Path) -> list[Path]:
    return sorted((cache / "parts").glob("shard-*"))


def address_of(kind: str, tmp_path: Path) -> str:
    return {"folder": f"{tmp_path}/store", "file": f"file://{tmp_path}/store", "memory": "memory://bucket/store"}[kind]


@pytest.mark.parametrize("kind", ["folder", "file", "memory"])
def test_batches_are_those_of_the_parts(source: Parallel, tmp_path: Path, kind: str) -> None:
    cache, address = tmp_path / "cache", address_of(kind, tmp_path)
    made = write(source, cache, address)
    expected = [order(data_of(source, cache, rank=rank)) for rank in (0, 1)]
    lines = [[*read_lines(path)] for path in source.files(cache)["val"]]
    for path in (*tmp_path.glob("*.*"), cache):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    node, most = tmp_path / "node", 0

    def count() -> None:
        nonlocal most
        most = max(most, len(copies(node)))

    given = PreparedFolder(root=address)
    assert describe(given) == describe(source)
    assert [order(data_of(given, node, rank=rank), each=count) for rank in (0, 1)] == expected
    found = prepare(given, TRAINER, node)
    assert found.fingerprint == made.fingerprint
    assert len(found.dataset("train").shards or ()) == 7
    assert [[*read_lines(path)] for path in given.files(node)["val"]] == lines
    assert most <= (0 if kind == "folder" else 4)  # of training three, and validation's
    data_of(given, node).check(world_size=2)


def test_a_run_goes_on_with_a_store_and_without(source: Parallel, tmp_path: Path) -> None:
    address = address_of("memory", tmp_path)
    write(source, tmp_path / "cache", address)
    stored = PreparedFolder(root=address)
    for before, after in ((source, stored), (stored, source)):
        whole, part = data_of(source, tmp_path / "cache"), data_of(before, tmp_path / "cache")
        expected = order(whole, 1)
        part.train_dataloader()
        part.batches_trained = 5
        resumed = data_of(after, tmp_path / "cache")
        resumed.load_state_dict(part.state_dict())
        assert order(resumed, 1) == expected[5:]


def test_the_next_shard_is_copied_while_one_is_used(source: Parallel, tmp_path: Path) -> None:
    address, node = address_of("memory", tmp_path), tmp_path / "node"
    write(source, tmp_path / "cache", address)
    next(iter(data_of(PreparedFolder(root=address), node).train_dataloader()))
    deadline = time.monotonic() + 60
    while len(copies(node)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(copies(node)) == 2


def test_workers_that_lag_behind_copy_what_was_removed(source: Parallel, tmp_path: Path) -> None:
    """Shards of a few batches, of which two workers make several in advance."""
    address, cache = address_of("file", tmp_path), tmp_path / "cache"
    write(source, cache, address)
    expected = order(data_of(source, cache))
    assert order(data_of(PreparedFolder(root=address), tmp_path / "node", num_workers=2)) == expected


def test_options_of_batches_are_those_of_the_parts(source: Parallel, tmp_path: Path) -> None:
    address, cache = address_of("folder", tmp_path), tmp_path / "cache"
    write(source, cache, address)
    stored = PreparedFolder(root=address)
    for options in ({"max_length": 40}, {"batches": 4}, {"static_shapes": True}, {"tokens": 300, "sentences": 3}):
        one, other = (order(data_of(given, cache, **options), 1) for given in (source, stored))
        assert one == other
    with pytest.raises(CorpusError, match=r"a pair of .*store has \d+ tokens, more than batching\.tokens=20"):
        data_of(stored, cache, tokens=20).check(world_size=1)
    with pytest.raises(CorpusError, match=r"store: pair \d+ of train has \d+ tokens, more than batching\.tokens=20"):
        [*data_of(stored, cache, tokens=20).training_targets()]
    all_targets = ([*data_of(given, cache).training_targets()] for given in (source, stored))
    plain, same = ([[part.tolist() for part in pair] for pair in targets] for targets in all_targets)
    assert plain == same


def test_writing_goes_on_after_a_kill(source: Parallel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a process ends while it writes the third shard. Effect: the first two stay, and are not written again."""
    cache, address, folder = tmp_path / "cache", address_of("file", tmp_path), tmp_path / "store"
    prepared, opened, open_file = prepare(source, TRAINER, cache), list[str](), LocalFileSystem.open

    def opening(self: Any, path: str, mode: str = "rb", **options: Any) -> Any:
        opened.append(Path(path).name)
        if opened.count("train-00002") == 1 and opened[-1] == "train-00002":
            Path(path).write_text("half")
            raise KeyboardInterrupt
        return open_file(self, path, mode, **options)

    monkeypatch.setattr(LocalFileSystem, "open", opening)
    with pytest.raises(KeyboardInterrupt):
        write_store(prepared, address, lambda *_: None)
    with pytest.raises(
        CorpusError, match=r"store\.json cannot be read .*; write it again with softsearch prepare store"
    ):
        PreparedFolder(root=address)
    with pytest.raises(ConfigError, match=r"is not a folder of prepared data: .* store that it has written to the end"):
        PreparedFolder(root=folder)
    write_store(prepared, address, lambda *_: None)
    assert [name[-1] for name in opened if re.fullmatch(r"train-\d+", name)] == [*"01223456"]
    assert not [*folder.glob("*-*.json")]
    states = {path: path.stat().st_mtime_ns for path in folder.glob("*-*")}
    (folder / "train-00004").write_text("damaged")
    write_store(prepared, address, lambda *_: None)
    changed = [path.name for path, state in states.items() if path.stat().st_mtime_ns != state]
    assert changed == ["train-00004"]
    assert order(data_of(PreparedFolder(root=address), tmp_path / "node")) == order(data_of(source, cache))


def test_other_data_are_not_overwritten(source: Parallel, tmp_path: Path) -> None:
    address = address_of("memory", tmp_path)
    write(source, tmp_path / "cache", address)
    with pytest.raises(ConfigError, match=r"has other data: found \w+-\w+, expected \w+; choose another address"):
        write(replace(source, weights=None), tmp_path / "cache", address)
    fsspec.filesystem("memory").rm("/bucket/store/" + INDEX)
    with pytest.raises(CorpusError, match=r"bucket/store/store\.json cannot be read \(FileNotFoundError"):
        PreparedFolder(root=address)


def flipped(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


FAULTS: dict[str, tuple[Callable[[bytes], bytes | None], str]] = {
    "missing": (lambda _: None, r"train-\d+ cannot be read \(FileNotFoundError.*check the network, and that the file"),
    "cut short": (lambda content: content[:-8], r"train-\d+: found [\d,]+ bytes, expected [\d,]+; write it again"),
    "altered": (flipped, r"train-\d+ is damaged: it has SHA-256 \w+, expected \w+; remove it there, and write it"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_shard_is_named_and_not_kept(source: Parallel, tmp_path: Path, fault: str) -> None:
    """Fault: a shard in the store is missing or damaged. Effect: training ends; it goes on once it is mended."""
    address, node, memory = address_of("memory", tmp_path), tmp_path / "node", fsspec.filesystem("memory")
    prepared = write(source, tmp_path / "cache", address)
    change, message = FAULTS[fault]
    for path in memory.glob("/bucket/store/train-*"):
        content = change(memory.cat_file(path))
        memory.rm_file(path)
        if content is not None:
            memory.pipe_file(path, content)
    data = data_of(PreparedFolder(root=address), node)
    with pytest.raises(CorpusError, match=message):
        next(iter(data.train_dataloader()))
    assert copies(node) == []
    if fault == "altered":
        memory.rm(memory.glob("/bucket/store/train-*"))
    write_store(prepared, address, lambda *_: None)
    assert order(data_of(PreparedFolder(root=address), node)) == order(data_of(source, tmp_path / "cache"))


def test_a_shard_of_a_folder_that_was_cut_short(source: Parallel, tmp_path: Path) -> None:
    address = address_of("folder", tmp_path)
    write(source, tmp_path / "cache", address)
    for path in Path(address).glob("train-*"):
        path.write_bytes(path.read_bytes()[:-8])
    data = data_of(PreparedFolder(root=address), tmp_path / "node")
    with pytest.raises(CorpusError, match=r"train-\d+: found [\d,]+ bytes, expected [\d,]+ bytes; write it again"):
        next(iter(data.train_dataloader()))


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_nothing_half_copied_stays(
    source: Parallel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    """Fault: the disk is full, or the process ends, while a shard is copied. Effect: the next call copies it again."""
    address, node = address_of("memory", tmp_path), tmp_path / "node"
    write(source, tmp_path / "cache", address)
    memory = type(fsspec.filesystem("memory"))
    get_file = memory.get_file

    def failing(self: Any, path: str, target: str, **options: Any) -> None:
        if "train-" in path:
            Path(target).write_text("half")
            raise fault
        get_file(self, path, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr(memory, "get_file", failing)
        expected = KeyboardInterrupt if isinstance(fault, KeyboardInterrupt) else CorpusError
        with pytest.raises(expected) as caught:
            next(iter(data_of(PreparedFolder(root=address), node).train_dataloader()))
    if isinstance(fault, OSError):
        assert "shard-" in str(caught.value)
        assert "(No space left on device); free space there or choose another cache folder" in str(caught.value)
    assert copies(node) == []
    assert [*(node / "parts").glob(".unfinished-*")] == []
    assert order(data_of(PreparedFolder(root=address), node)) == order(data_of(source, tmp_path / "cache"))


def test_addresses_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"s3://bucket/x needs s3fs, which is not installed: pip install s3fs"):
        PreparedFolder(root="s3://bucket/x")
    with pytest.raises(ConfigError, match=r"gs://bucket/x needs gcsfs, which is not installed: pip install gcsfs"):
        PreparedFolder(root="gs://bucket/x")
    with pytest.raises(
        ConfigError, match=r"s4://bucket/x cannot be opened \(Protocol not known: s4\); expected a folder"
    ):
        PreparedFolder(root="s4://bucket/x")
    with pytest.raises(CorpusError, match=r"memory://nothing/store\.json cannot be read .*check the address"):
        PreparedFolder(root="memory://nothing")


CHANGES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda index: index.update(format=9), "its format is 9, this version reads 1"),
    (lambda index: index["files"][0].update(name="../x"), r"'\.\./x' is not the name of a file"),
    (lambda index: index["splits"]["val"][0].update(pairs="x"), r"splits\.val\[0\]\.pairs is 'x', expected"),
    (lambda index: index.pop("types"), "types is missing"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_a_damaged_list_is_refused(source: Parallel, tmp_path: Path, change: Any, message: str) -> None:
    address = address_of("folder", tmp_path)
    write(source, tmp_path / "cache", address)
    index = json.loads((Path(address) / INDEX).read_text())
    change(index)
    (Path(address) / INDEX).write_text(json.dumps(index))
    with pytest.raises(
        CorpusError, match=rf"store\.json: .*{message}.*; write it again with softsearch prepare store="
    ):
        _ = Store(address).contents


def test_weights_are_those_of_the_store(source: Parallel, tmp_path: Path) -> None:
    write(source, tmp_path / "cache", address_of("folder", tmp_path))
    with pytest.raises(ConfigError, match="is a store, whose pairs have the weights that they were written with"):
        PreparedFolder(root=address_of("folder", tmp_path), temperature=2)


def test_rows_of_shards_are_the_inverse_of_their_pairs() -> None:
    for pairs in (1, 19, 20, 21, 103):
        shards = sampler.shards_of(pairs)
        parts = [sampler.pairs_of_shard(pairs, number, shards) for number in range(shards)]
        rows = sampler.ShardRows([len(part) for part in parts])
        assert len(rows) == pairs
        assert rows[np.concatenate(parts)].tolist() == [*range(pairs)]
        assert int(rows[0]) == 0
