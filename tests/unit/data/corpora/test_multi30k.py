"""Multi30k from a folder and from a server on this machine; nothing here leaves it."""

import gzip
import hashlib
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from softsearch.data.corpora import multi30k
from softsearch.data.corpora.multi30k import UPSTREAM, Multi30k
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.filters import read_parallel

SHA256 = dict(line.split() for line in multi30k._REGISTRY.read_text().splitlines()[1:])


def fill(folder: Path, names: list[str]) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(gzip.compress(b"text\n") if name.endswith(".gz") else b"text\n")
    return folder


def names_of(source: Multi30k, cache_dir: Path) -> dict[str, tuple[str, ...]]:
    return {split: tuple(path.name for path in pair) for split, pair in source.files(cache_dir).items()}


def test_the_first_pairs_are_the_training_text(tmp_path: Path) -> None:
    for name in ("train", "val", "test_2016_flickr"):
        for lang in ("en", "de"):
            (tmp_path / f"{name}.lc.tok.{lang}").write_text("".join(f"{lang} {number}\n" for number in range(5)))
    files = Multi30k(root=tmp_path, train_size=2).files(tmp_path / "cache")
    found = {split: read_parallel(*pair) for split, pair in files.items()}
    assert (found["train"].src, found["train"].tgt) == (["en 0", "en 1"], ["de 0", "de 1"])
    assert [len(found[split].src) for split in ("val", "test")] == [5, 5]


def test_folder_with_tokenised_files(tmp_path: Path) -> None:
    names = ["train.lc.tok.en.gz", "train.lc.norm.tok.de", "val.lc.tok.en", "val.lc.tok.de.gz"]
    root = fill(tmp_path / "root", [*names, "test_2017_mscoco.lc.norm.tok.en", "test_2017_mscoco.lc.tok.de.gz"])
    source = Multi30k(root=str(root), test_set="test_2017_mscoco")
    assert source.text_form == "lc_tok"
    assert names_of(source, tmp_path / "cache") == {
        "train": ("train.lc.tok.en.gz", "train.lc.norm.tok.de"),
        "val": ("val.lc.tok.en", "val.lc.tok.de.gz"),
        "test": ("test_2017_mscoco.lc.norm.tok.en", "test_2017_mscoco.lc.tok.de.gz"),
    }
    assert not (tmp_path / "cache").exists()


def test_folder_with_raw_files(tmp_path: Path) -> None:
    stems = [f"{split}.{lang}" for split in ("train", "val", "test_2016_flickr") for lang in ("de", "fr")]
    root = fill(tmp_path / "root", [stems[0], *(f"{stem}.gz" for stem in stems[1:])])
    source = Multi30k(root=root, variant="raw", src_lang="de", tgt_lang="fr")
    assert source.text_form == "plain"
    assert names_of(source, tmp_path)["train"] == ("train.de", "train.fr.gz")


def test_folder_without_a_file_says_what_it_looked_for(tmp_path: Path) -> None:
    root = fill(tmp_path / "root", ["train.en.gz", "train.de.gz"])
    looked_for = r"train.lc.tok.en, train.lc.tok.en.gz, train.lc.norm.tok.en, train.lc.norm.tok.en.gz"
    with pytest.raises(CorpusError, match=rf"data.root={root} has none of {looked_for} \(data.variant=lc_tok\)"):
        Multi30k(root=root).files(tmp_path)


def test_real_folder(multi30k_dir: Path, tmp_path: Path) -> None:
    files = Multi30k(root=multi30k_dir).files(tmp_path)
    assert read_parallel(*files["test"], keep_empty=True).report.lines == 1000
    for split, pair in files.items():
        name = "test_2016_flickr" if split == "test" else split
        for lang, path in zip(("en", "de"), pair, strict=True):
            digest = hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
            assert digest == SHA256[f"data/task1/tok/{name}.lc.norm.tok.{lang}"]


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder and the address on this machine that it is served at."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{httpd.server_address[1]}/"
        httpd.shutdown()
        thread.join()


def test_download_once_and_check(multi30k_dir: Path, tmp_path: Path, server: tuple[Path, str]) -> None:
    folder, address = server
    for name in ("train", "val", "test_2016_flickr"):
        for lang in ("en", "de"):
            path = folder / f"data/task1/tok/{name}.lc.norm.tok.{lang}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.decompress((multi30k_dir / f"{name}.lc.tok.{lang}.gz").read_bytes()))
    source = Multi30k(mirror=address)
    files = source.files(tmp_path / "cache")
    assert read_parallel(*files["train"]).report.kept == 29_000
    for path in (folder / "data/task1/tok").iterdir():
        path.unlink()
    assert source.files(tmp_path / "cache") == files


def test_download_of_altered_file_is_refused(tmp_path: Path, server: tuple[Path, str]) -> None:
    folder, address = server
    path = folder / "data/task1/tok/train.lc.norm.tok.en"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"something else\n")
    with pytest.raises(CorpusError, match=r"cannot fetch data/task1/tok/train.lc.norm.tok.en .*hash"):
        Multi30k(mirror=address).files(tmp_path / "cache")
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    with pytest.raises(CorpusError) as caught:
        Multi30k(mirror=address, variant="raw").files(tmp_path / "cache")
    message = str(caught.value)
    assert message.startswith(f"cannot fetch data/task1/raw/train.en.gz from {address}: ")
    assert f"it is not in {tmp_path / 'cache' / 'multi30k'} either" in message
    assert message.endswith("Without a network, put the files in a folder and set data.root=FOLDER")


def test_upstream_is_pinned() -> None:
    assert UPSTREAM.endswith("/a3d2e0d26b56f3846f66a952536ffed4e401d05a/")
    assert len(SHA256) == 44
    assert all(len(digest) == 64 for digest in SHA256.values())


def test_languages_and_test_sets_that_there_are() -> None:
    for test_set, lang in product(get_args(multi30k.TestSet), ("cs", "de", "fr")):
        if f"data/task1/raw/{test_set}.{lang}.gz" in SHA256:
            Multi30k(test_set=test_set, tgt_lang=lang)
        else:
            with pytest.raises(ConfigError, match=rf"data.test_set is {test_set}, which has no {lang}; choose another"):
                Multi30k(test_set=test_set, tgt_lang=lang)
    with pytest.raises(ConfigError, match=r"data\.src_lang and data\.tgt_lang are both 'en'"):
        Multi30k(tgt_lang="en")
