"""Tables as files of lines in the cache, by content; addresses with their digest."""

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from softsearch.data.corpora.base import UnreadPath
from softsearch.data.corpora.table import Table
from softsearch.errors import ConfigError, CorpusError

TEXT = "en\tde\na\tb\nc\td\n"
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "x.tsv").write_text(TEXT)
    handler = partial(QuietHandler, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/x.tsv"
        server.shutdown()
        thread.join()


def table(path: str | Path, **options: Any) -> Table:
    return Table(train=path, val=path, src="en", tgt="de", **options)


def test_lines_in_the_cache_follow_the_content(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'en,de\n"a\r\nb",c\n')
    source = table(path)
    first = source.files(tmp_path / "cache")["train"]
    assert [file.read_text() for file in first] == ["a b\n", "c\n"]
    assert (source.src_lang, source.tgt_lang) == ("en", "de")
    path.write_text("en,de\nanother,one\n")
    assert table(path).files(tmp_path / "cache")["train"][0].read_text() == "another\n"
    assert first[0].read_text() == "a b\n"


def test_an_address_is_fetched_once_and_never_for_a_checkpoint(tmp_path: Path, address: str) -> None:
    digests = {"train": DIGEST, "val": DIGEST}
    with pytest.raises(CorpusError, match="which was not read"):
        table(UnreadPath(address), sha256=digests).files(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    files = table(address, sha256=digests).files(tmp_path / "cache")
    (tmp_path / "served" / "x.tsv").unlink()
    assert files["train"][1].read_text() == "b\nd\n"
    assert table(UnreadPath(address), sha256=digests).files(tmp_path / "cache") == files  # in the cache by its digest


def test_wrong_digests(tmp_path: Path, address: str) -> None:
    with pytest.raises(CorpusError, match=r"cannot fetch data\.train=http"):
        table(address, sha256={"train": "0" * 64, "val": DIGEST}).files(tmp_path / "cache")
    with pytest.raises(CorpusError, match=f"has the SHA-256 {DIGEST}, expected 000"):
        table(tmp_path / "served" / "x.tsv", sha256={"train": "0" * 64}).files(tmp_path / "cache")
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []
    with pytest.raises(ConfigError, match=r"set data.sha256.train=SHA256"):
        table(address)
    with pytest.raises(ConfigError, match="expected 64 hexadecimal digits"):
        table(address, sha256={"train": "../../x"})


def test_damaged_tables_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("en\tde\n")
    with pytest.raises(CorpusError, match="has no rows"):
        table(tmp_path / "x.tsv").files(tmp_path / "cache")
    (tmp_path / "x.tsv").write_text("en\tde\na\tb\nc\n")
    with pytest.raises(CorpusError, match=r"x.tsv:3 has 1 cells"):
        table(tmp_path / "x.tsv").files(tmp_path / "cache")
    assert not any(path.is_dir() for path in (tmp_path / "cache").iterdir())
    with pytest.raises(CorpusError, match=r"data.train: no such file: "):
        table(tmp_path / "none.tsv").files(tmp_path / "cache")
    with pytest.raises(ConfigError, match="expected two names or two numbers"):
        Table(train="x.tsv", val="x.tsv", src=1, tgt="de")
