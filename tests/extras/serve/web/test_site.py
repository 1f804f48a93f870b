"""Sites: whole folders of a page, verified models and their description, or an error that says what to do."""

import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import softsearch
from softsearch.errors import BundleError, ConfigError
from softsearch.extras.serve.models import model_facts
from softsearch.extras.serve.web import site as site_module
from softsearch.extras.serve.web.site import assets, model_names, site_json, write_site
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.cli import main
from softsearch.text import SentencePieceTokenizer
from tests.support.bundles import edit_manifest

GOLDEN = Path(__file__).parents[3] / "golden"
SINGLE = GOLDEN / "single"
PAGE = {"index.html": "<p>", "main.js": "run()", "service-worker.js": "keep()"}
FACTS = asdict(model_facts("single", Bundle.open(SINGLE)))


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page that is built in no time."""
    folder = tmp_path / "assets"
    folder.mkdir()
    for name, text in PAGE.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(site_module, "_ASSETS", folder)
    return folder


@pytest.fixture
def single(tmp_path: Path) -> Path:
    """A copy of the golden folder, to change."""
    return Path(shutil.copytree(SINGLE, tmp_path / "single"))


def read(folder: Path) -> Any:
    return json.loads((folder / "site.json").read_text())


@pytest.mark.usefixtures("built")
def test_a_site_holds_the_page_the_models_and_their_description(tmp_path: Path) -> None:
    (tmp_path / "examples").write_text("one\n\n  zw\u00f6lf \n", encoding="utf-8")
    folder = tmp_path / "new" / "site"
    sizes = write_site([SINGLE], folder, tmp_path / "examples")
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    models = {f"models/single/{name}" for name in ("manifest.json", "model.onnx", "tokenizer.json")}
    assert found == {*PAGE, *models, "site.json"} == sizes.keys()
    assert sizes["main.js"] == len("run()")
    for name in ("manifest.json", "model.onnx", "tokenizer.json"):
        assert (folder / "models" / "single" / name).read_bytes() == (SINGLE / name).read_bytes()
    site = read(folder)
    assert site.pop("version").startswith(f"{softsearch.__version__}+")
    limits = [2 * length + 10 for length in range(512)]  # of source tokens, EOS excluded
    examples = [{"text": "one", "note": ""}, {"text": "zw\u00f6lf", "note": ""}]
    page = {"title": "", "text": "", "models": [FACTS | {"about": None, "most_tokens": limits}], "examples": examples}
    assert site == {"backend": "local", "files": [*sizes], **page}
    assert [path.name for path in folder.parent.iterdir()] == ["site"]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("reads_symbols", [False, True])
def test_a_page_says_that_it_writes_no_symbols(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads_symbols: bool
) -> None:
    monkeypatch.setattr(SentencePieceTokenizer, "reads_symbols", reads_symbols)
    write_site([SINGLE], tmp_path / "site")
    assert read(tmp_path / "site")["models"][0].get("without_symbols", False) is reads_symbols


def test_a_file_that_describes_models_is_checked_before_there_are_exports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "about.json").write_text('{"models": {"rnn": {"year": 1990}}}')
    assert main(["web", "--about", str(tmp_path / "about.json")]) == 0
    assert capsys.readouterr().out.endswith("about.json: OK, with 1 models\n")
    (tmp_path / "about.json").write_text('{"models": {"rnn": {"year": 990}}}')
    assert main(["web", "--about", str(tmp_path / "about.json")]) == 2
    assert capsys.readouterr().err.endswith(
        "expected a whole number of at least 1900 and at most 2100 or null; change it\n"
    )
    with pytest.raises(SystemExit, match="2"):
        main(["web"])
    assert "write softsearch web BUNDLE" in capsys.readouterr().err
    (tmp_path / "checkpoints").mkdir()
    assert main(["web", str(tmp_path)]) == 1
    assert "is a run, expected a bundle" in capsys.readouterr().err


@pytest.mark.usefixtures("built")
def test_the_service_worker_begins_with_the_version_and_the_files_that_it_keeps(tmp_path: Path) -> None:
    write_site([SINGLE], tmp_path / "site")
    start, script = (tmp_path / "site" / "service-worker.js").read_text().split("\n")
    assert script == "keep()"
    kept = json.loads(start.removeprefix("self.SITE=").removesuffix(";"))
    assert kept["version"] == read(tmp_path / "site")["version"]
    assert kept["files"] == ["index.html", "main.js", "models/single/manifest.json", "site.json"]


def test_the_version_changes_with_every_content_and_with_nothing_else(
    built: Path, single: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    versions = []
    for change in (
        lambda: None,
        lambda: (built / "main.js").write_text("run(1)"),
        lambda: single.rename(tmp_path / "b"),
    ):
        change()
        for _ in range(2):
            write_site([next(path for path in (single, tmp_path / "b") if path.exists())], folder)
            versions.append(read(folder)["version"])
    (tmp_path / "examples").write_text("one")
    write_site([tmp_path / "b"], folder, tmp_path / "examples")
    versions.append(read(folder)["version"])
    assert [versions[::2], len(set(versions))] == [[*versions[1::2], versions[-1]], 4]


def test_names_are_safe_in_addresses_and_unique() -> None:
    paths = [Path(f"/x/{name}") for name in ("a b/c", "b/C", ".hidden", "\u00fcml\u00e4ut", "\u4e2d", "c", "a&<b>")]
    assert model_names(paths) == ["c", "C-2", "hidden", "ml-ut", "model", "c-3", "a-b"]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", ["stranger", "addition", "file", "link", "server", "other-json"])
def test_what_is_not_a_site_is_never_replaced(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "site"
    write_site([SINGLE], folder if kind in ("addition", "link", "server") else tmp_path / "other")
    target = folder
    if kind == "addition":
        (folder / "models" / "thesis.tex").write_text("years of work")
    elif kind == "file":
        folder.write_text("")
    elif kind == "link":
        target = tmp_path / "link"
        target.symlink_to(folder)
    elif kind == "server":
        (folder / "site.json").write_text(json.dumps(read(folder) | {"backend": "server"}))
    else:
        folder.mkdir()
        (folder / ("site.json" if kind == "other-json" else "thesis.tex")).write_text("[1]")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BundleError, match=r"expected a new or an older site's folder, choose another"):
        write_site([SINGLE], target)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_older_site_is_replaced_whole_and_an_empty_folder_is_taken(built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    write_site([SINGLE, SINGLE], folder)
    assert (folder / "models" / "single-2").is_dir()
    (built / "main.js").rename(built / "other.js")
    write_site([SINGLE], folder)
    assert not (folder / "main.js").exists()
    assert not (folder / "models" / "single-2").exists()


@pytest.mark.usefixtures("built")
def test_an_error_leaves_the_older_site(single: Path, tmp_path: Path) -> None:
    write_site([single], tmp_path / "site")
    before = {path: path.read_bytes() for path in (tmp_path / "site").rglob("*") if path.is_file()}
    content = bytearray((single / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (single / "model.onnx").write_bytes(content)
    with pytest.raises(BundleError, match=r"model\.onnx has sha256"):
        write_site([SINGLE, single], tmp_path / "site")
    assert {path: path.read_bytes() for path in (tmp_path / "site").rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("built")
def test_a_full_disk_is_one_line_of_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # no file can grow
    try:
        code = main(["web", str(SINGLE), "--out", str(tmp_path / "site")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    error = capsys.readouterr().err
    assert (code, error.count("\n")) == (1, 1)
    assert re.search(r"site cannot be written \(.*File too large.*\); an older site is unchanged, free space", error)
    assert "[(" not in error
    assert not (tmp_path / "site").exists()


@pytest.mark.usefixtures("built")
def test_a_bundle_for_python_is_refused_with_the_command_that_exports_the_other(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"bundle has no model\.onnx, which browsers need; .* format=single$"):
        write_site([GOLDEN / "bundle"], tmp_path / "site")


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("side", "message"), [("src", "from the end of a text to its start"), ("", "other tokens than SentencePiece")]
)
def test_a_model_without_tokenizer_json_is_refused_with_the_reason(
    single: Path, tmp_path: Path, side: str, message: str
) -> None:
    (single / "tokenizer.json").unlink()

    def edit(tree: dict[str, Any]) -> None:
        del tree["files"]["tokenizer.json"]
        if side:
            tree["reversed"][side] = True

    edit_manifest(single, edit)
    with pytest.raises(BundleError, match=message):
        write_site([single], tmp_path / "site")


@pytest.mark.usefixtures("built")
def test_a_model_that_no_browser_can_load_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "MAX_GRAPH_BYTES", 100_000)
    with pytest.raises(BundleError, match=r"model\.onnx has 128,552 bytes, but browsers load at most 100,000"):
        write_site([SINGLE], tmp_path / "site")


@pytest.mark.usefixtures("built")
def test_more_examples_than_a_page_can_show_are_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus").write_text("one\n" * 101)
    with pytest.raises(ConfigError, match=r"corpus has 101 lines, expected at most 100 examples"):
        write_site([SINGLE], tmp_path / "site", tmp_path / "corpus")


def test_a_page_that_is_not_built_says_how_to_build_it(built: Path, tmp_path: Path) -> None:
    (built / "index.html").unlink()
    with pytest.raises(ConfigError, match=r"install Node\.js 20 or newer and run `make web`"):
        write_site([SINGLE], tmp_path / "site")


def test_a_server_describes_its_models_likewise() -> None:
    models = [model_facts("a", Bundle.open(SINGLE)), model_facts("b", Bundle.open(GOLDEN / "bundle"))]
    site = site_json(models, backend="server", version="1")
    assert [{*FACTS, "about"}] * 2 == [model.keys() for model in site["models"]]
    assert [(model["name"], model["has_attention"]) for model in site["models"]] == [("a", True), ("b", True)]
    assert (site["backend"], site["version"], site["examples"], site["files"]) == ("server", "1", [], [])


@pytest.mark.usefixtures("built")
def test_the_command_says_how_to_open_the_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my site"
    assert main(["web", str(SINGLE), "--out", str(folder)]) == 0
    assert f"-m http.server --directory '{folder}' 8000\nthen http://localhost:8000" in capsys.readouterr().out
    assert main(["web", str(tmp_path), "--out", str(folder)]) == 1
    assert capsys.readouterr().err.startswith("softsearch: error: ")


def test_the_page_that_is_built_weighs_less_than_15_megabytes(page: Path) -> None:
    assert page == assets()
    assert sum(path.stat().st_size for path in page.iterdir() if path.is_file()) < 15_000_000
    assert {"index.html", "main.js", "local.js", "worker.js", "service-worker.js"} <= {
        path.name for path in page.iterdir()
    }
    assert "Content-Security-Policy" in (page / "index.html").read_text(encoding="utf-8")


def test_the_lock_file_names_no_registry(repo_root: Path) -> None:
    assert '"resolved"' not in (repo_root / "src" / "web" / "package-lock.json").read_text(encoding="utf-8")
