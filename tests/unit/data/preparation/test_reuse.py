"""What has been prepared is not prepared again: once for each content, in parts, by several hosts, or as a copy."""

import json
import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.prepared_folder import PreparedFolder, describe
from softsearch.data.existing_tokenizers import ExistingTokenizers
from softsearch.data.preparation import cache_folder, id_parts, text_parts
from softsearch.data.preparation.inputs import Inputs
from softsearch.data.preparation.prepare import prepare, text_problems
from softsearch.data.preparation.steps import make_share
from softsearch.data.preparation.text_parts import Share
from softsearch.data.tokenizer_files import from_files
from softsearch.errors import ConfigError, CorpusError
from softsearch.text import corpus as corpus_module
from softsearch.text.corpus import read_lines
from softsearch.text.filters import Filters
from softsearch.text.tokenizer import TokenizerTrainer
from softsearch.text.vocabulary import FEATURE_TAG
from tests.support.pairs import TRAINER, files_of, ids_of, write_corpus, write_pair


def visible(cache: Path) -> list[Path]:
    """What is there of prepared data, besides the files of locks."""
    return [path for path in (cache / "prepared").iterdir() if path.suffix != ".lock"]


def test_the_same_content_is_prepared_once(
    source: Parallel, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(source, TRAINER, cache)
    stamps = [path.stat().st_mtime_ns for path in sorted(first.folder.iterdir())]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = write_corpus(elsewhere, test=5)  # other files with the same bytes
    for path in copy.files(cache)["train"]:
        os.utime(path, (1, 1))
    monkeypatch.setattr(TokenizerTrainer, "train", lambda *_: pytest.fail("trained again"))
    again = prepare(copy, TRAINER, cache)
    assert again.folder == first.folder
    assert [path.stat().st_mtime_ns for path in sorted(first.folder.iterdir())] == stamps


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("side", [0, 1])
def test_one_changed_byte_is_another_corpus(source: Parallel, cache: Path, split: str, side: int) -> None:
    """Fault: a corpus changes. Effect: it is prepared again."""
    first = prepare(source, TRAINER, cache)
    path = source.files(cache)[split][side]
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # content decides, not time or size
    second = prepare(source, TRAINER, cache)
    assert second.fingerprint != first.fingerprint
    assert first.folder.is_dir()


def test_swapped_sides_are_another_corpus(source: Parallel, cache: Path) -> None:
    swapped = Parallel(train=source.train[::-1], val=source.val[::-1], test=(source.test or ())[::-1])
    assert prepare(swapped, TRAINER, cache).fingerprint != prepare(source, TRAINER, cache).fingerprint


@pytest.mark.skipif(cache_folder.fcntl is None, reason="the system has no locks")
def test_of_many_at_once_one_prepares(source: Parallel, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: several runs prepare the same corpus at once. Effect: one prepares it, the others wait."""
    trained = []
    train = TokenizerTrainer.train
    monkeypatch.setattr(TokenizerTrainer, "train", lambda *args: trained.append(args) or train(*args))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: prepare(source, TRAINER, cache), range(4)))
    assert {prepared.folder for prepared in found} == set(visible(cache))
    assert len(trained) == 1


@pytest.mark.parametrize("damaged", ["prepared/*/parts.json", "parts/ids-*/src.ids", "parts/ids-*/lines"])
def test_damaged_data_is_prepared_again(source: Parallel, cache: Path, damaged: str) -> None:
    """Fault: damaged files in the cache. Effect: a warning; they are prepared again."""
    folder = prepare(source, TRAINER, cache).folder
    whole, path = files_of(cache), min(cache.glob(damaged))
    os.truncate(path, 1)
    assert prepare(source, TRAINER, cache).folder == folder
    assert files_of(cache) == whole
    assert visible(cache) == [folder]


def states(cache: Path) -> dict[Path, tuple[int, int]]:
    """Changes with each file of a part that is written again."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in cache.glob("parts/*/*")}


def test_a_corpus_more_costs_its_part_alone(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (write_pair(tmp_path, name, 30, seed) for seed, name in enumerate(("a", "b")))
    source = Parallel(train=[first], val=write_pair(tmp_path, "val", 5), filters=Filters(duplicates=True))
    model = prepare(source, TRAINER, cache).folder / "src.model"
    before = states(cache)
    cleaned, encoded = Counter[str](), Counter[int]()
    clean, encode = text_parts.clean_pairs, id_parts.encode_sides
    monkeypatch.setattr(
        text_parts, "clean_pairs", lambda all_, item: cleaned.update([all_[item[0][0]].src.name]) or clean(all_, item)
    )
    monkeypatch.setattr(
        id_parts, "encode_sides", lambda both, sides: encoded.update([len(sides[0])]) or encode(both, sides)
    )
    more = replace(source, train=[first, second])
    assert len(prepare(more, TRAINER, cache).dataset("train")) > 30
    assert cleaned == {"b.en": 1}
    assert {**encoded} == {30: 2, 5: 1}  # with another tokenizer, because it was trained on more text
    encoded.clear()
    kept = from_files(replace(TRAINER, model=model))
    one = prepare(source, kept, cache)
    both = prepare(more, kept, cache)
    assert (cleaned.total(), {**encoded}) == (1, {30: 1})  # of the first corpus the ids were there
    assert [ids_of(both.dataset("train"), i) for i in range(20)] == [ids_of(one.dataset("train"), i) for i in range(20)]
    assert before.items() <= states(cache).items()


@pytest.mark.parametrize("existing", [False, True])
def test_hosts_make_their_shares_and_one_joins_them(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    monkeypatch.setattr(corpus_module, "_CHUNK_PAIRS", 7)
    monkeypatch.setattr(text_parts, "PART_LINES", 10)
    pairs = [write_pair(tmp_path, name, 40, seed) for seed, name in enumerate(("a", "b"))]
    source = Parallel(train=pairs, val=write_pair(tmp_path, "val", 5), filters=Filters(duplicates=True))
    alone = prepare(source, TRAINER, tmp_path / "alone")
    trainer = from_files(replace(TRAINER, model=alone.folder / "src.model")) if existing else TRAINER
    shares = [Share(number, 3) for number in (1, 2, 3)]
    first = [make_share(Inputs(source, trainer, cache), share, 1, None) for share in shares]
    assert [made.has_ids for made in first] == [existing, existing, True]  # the last one has found the text of all
    again = [make_share(Inputs(source, trainer, cache), share, 1, None) for share in shares]
    assert again == [(made.parts, True) for made in first]
    assert sum(made.parts for made in first) == 3 + 3 + 1
    monkeypatch.setattr(text_parts, "clean_pairs", lambda *_: pytest.fail("cleaned again"))
    monkeypatch.setattr(id_parts, "encode_sides", lambda *_: pytest.fail("encoded again"))
    joined = prepare(source, trainer, cache)
    assert existing or joined.fingerprint == alone.fingerprint
    one, other = alone.dataset("train"), joined.dataset("train")
    assert [ids_of(one, i) for i in range(len(one))] == [ids_of(other, i) for i in range(len(other))]


def test_a_copy_of_prepared_data_needs_no_text(source: Parallel, cache: Path, tmp_path: Path) -> None:
    source = replace(source, reverse_source=True, text_form="lc_tok")
    made = prepare(source, TRAINER, cache)
    lines = [[*read_lines(path)] for path in source.files(cache)["val"]]
    for folder in ("prepared", "parts"):
        shutil.copytree(cache / folder, tmp_path / "other" / folder, ignore=shutil.ignore_patterns("text-*"))
    shutil.rmtree(cache)
    for pair in source.files(cache).values():
        for path in pair:
            path.unlink()
    root = tmp_path / "other" / "prepared" / made.folder.name
    copy = PreparedFolder(root=root)
    assert describe(copy) == describe(source)
    found = prepare(copy, TRAINER, cache)
    assert found.fingerprint == made.fingerprint
    assert len(found.dataset("train")) == 60
    assert [[*read_lines(path)] for path in copy.files(cache)["val"]] == lines
    assert text_problems(copy, found.tgt_tokenizer, cache) == []
    prepare(copy, from_files(replace(TRAINER, model=root / "src.model")), cache)
    other = TokenizerTrainer(kind="bpe", vocab_size=60).train(["a b"], ["c"])[0].model
    with pytest.raises(ConfigError, match="was prepared with another tokenizer"):
        prepare(copy, ExistingTokenizers(models=(other, other), origin="init=x"), cache)
    with pytest.raises(CorpusError, match="has token ids, not the training text"):
        copy.train_files(cache)
    shutil.rmtree(min((tmp_path / "other" / "parts").glob("ids-*")))
    with pytest.raises(CorpusError, match=r"is damaged, or its parts are missing; copy it again"):
        prepare(copy, TRAINER, cache)
    with pytest.raises(ConfigError, match=r"is not a folder of prepared data: source\.json cannot be read"):
        PreparedFolder(root=tmp_path)
    (root / "source.json").write_text(json.dumps({**describe(source), "tags": [FEATURE_TAG]}))
    with pytest.raises(ConfigError, match=r"was prepared from feature vectors, which it does not have"):
        PreparedFolder(root=root)
