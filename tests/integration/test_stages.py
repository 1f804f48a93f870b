"""Every stage on every surface, ours and one from outside: each works as in Python, or says why it is not there."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, get_args

import httpx
import pytest

from softsearch.extras.serve.settings import default_options
from softsearch.runtime.arguments import prompt_flags
from softsearch.runtime.cli import main
from softsearch.runtime.flags import flag_of
from softsearch.runtime.prompt import Prompt
from softsearch.runtime.stages.chosen import every_stage, installed_stages
from softsearch.runtime.stages.stage import Surface
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import Translator
from softsearch.text.symbols import SYMBOLS
from softsearch.text.tokenizer import train_tokenizer
from tests.support.bundles import SRC_LINES, TGT_LINES, bundle_parts, encoder_graph, make_bundle, write_bundle
from tests.support.serving import BUNDLE, serving

PACKAGE = {
    "outside_stage.py": '''
from dataclasses import dataclass, replace
from typing import Annotated

from softsearch.option import Option
from softsearch.runtime import Stage


@dataclass(frozen=True, kw_only=True)
class Shout(Stage):
    """Writes translations in capital letters."""

    shout: Annotated[bool, Option("write translations in capital letters", True)] = False

    def after(self, translations, kept):
        return [replace(each, text=each.text.upper()) for each in translations]
''',
    "outside_stage-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: outside-stage\nVersion: 1.0\n",
    "outside_stage-1.0.dist-info/entry_points.txt": "[softsearch.stages]\nshout = outside_stage:Shout\n",
}
TRAINED = {"training": {"config": {"data": {"src_lang": "en", "tgt_lang": "de"}}}}
SYMBOL_LINE = "one %s and {name}"
LINE = "four euro and {name} eighty-three cents"


class Case(NamedTuple):
    """A stage's options, a model on which they show, and what of a translation shows it."""

    model: str
    line: str
    options: dict[str, Any]
    shown: str = "text"
    libretranslate: dict[str, Any] | None = None  # its own fields; None: the server's defaults


CASES = {
    "languages": Case("many", "one two three", {"tgt": "fr"}, libretranslate={"target": "fr"}),
    "paragraphs": Case("golden", "ten. two euro.", {"paragraphs": True}, libretranslate={}),
    "markup": Case("golden", "four <b>euro</b> ten", {"markup": True}, libretranslate={"format": "html"}),
    "symbols": Case("symbols", SYMBOL_LINE, {}, libretranslate={}),
    "terms": Case("golden", LINE, {"glossary": {"euro": "dollar"}, "keep_usual": True}),
    "unknown_words": Case("words", "four five six", {"replace_unknown": True}),
    "heads": Case("headed", "two cats", {"head": "layer 0, head 1"}, "alignments"),
    "confidence": Case("golden", LINE, {"confidence": True, "agreement": 2}, "confidence"),
    "trace": Case("golden", LINE, {"trace": True}, "traces"),
    "shout": Case("golden", LINE, {"shout": True}),
}
DEFAULTS = {"unknown_words": "words", "terms": "golden", "shout": "loud"}  # stage -> server of ``defaults``


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the package, installed, the models, and a glossary."""
    folder = tmp_path_factory.mktemp("stages")
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "terms.tsv").write_text("euro\tdollar\n")
    make_bundle(folder / "headed", heads=2, **TRAINED)
    pair = [train_tokenizer(lines, kind="bpe", vocab_size=90, tags=SYMBOLS) for lines in (SRC_LINES, TGT_LINES)]
    make_bundle(folder / "symbols", pair=(pair[0], pair[1]), **TRAINED)
    make_bundle(folder / "words", words=True, seed=3, **TRAINED)
    files, manifest = bundle_parts()
    tags = [f"<2{code}>" for code in ("de", "fr")]
    lines = [f"{tag} {line}" for tag in tags for line in SRC_LINES]
    tagged = train_tokenizer(lines, kind="bpe", vocab_size=50, tags=tags)
    files["src.model"], files["encoder.onnx"] = tagged.model, encoder_graph(tagged.vocab_size)
    write_bundle(folder / "many", files, {**manifest, **TRAINED, "vocab_sizes": {"src": tagged.vocab_size, "tgt": 60}})
    shutil.copytree(BUNDLE, folder / "golden")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", str(folder))
        patch.chdir(folder)
        installed_stages.cache_clear()
        yield folder
    installed_stages.cache_clear()


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[httpx.Client]:
    """A server without defaults."""
    names = sorted({case.model for case in CASES.values()})
    with serving(*names, "--workers", 1) as served, httpx.Client(base_url=served.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def defaults(place: Path) -> Iterator[dict[str, httpx.Client]]:
    """Clients of servers with defaults for all requests: of sentences with words alone, and of others."""
    own = {"words": ["--replace-unknown"], "golden": ["--glossary", "terms.tsv", "--keep-usual"], "loud": ["--shout"]}
    with ExitStack() as stack:
        clients = {}
        for name, words in own.items():
            model = name if name != "loud" else "golden"
            served = stack.enter_context(serving(model, "--workers", 1, *words))
            clients[name] = stack.enter_context(httpx.Client(base_url=served.url, timeout=60))
        yield clients


def expected(case: Case, **more: Any) -> Translation:
    (found,) = Translator(case.model, threads=1).translate([case.line], **alignments(case), **case.options | more)
    return found


def alignments(case: Case) -> dict[str, Any]:
    return {"alignments": True} if "head" in case.options else {}


def shown(case: Case, translation: Translation) -> Any:
    """What shows that the stage did its work, as JSON has it."""
    found = getattr(translation, case.shown)
    if case.shown == "alignments":
        return pytest.approx([float(weight) for row in found for weight in row], abs=2e-4)
    if case.shown == "confidence":
        return pytest.approx(found.agreement, abs=1e-4)
    return found if case.shown == "text" else len(found[0]["steps"])


def shown_over_http(case: Case, result: dict[str, Any]) -> Any:
    best = result["n_best"][0]
    if case.shown == "alignments":
        return [weight for row in best["alignments"] for weight in row]
    if case.shown == "confidence":
        return best["confidence"]["agreement"]
    return best["text"] if case.shown == "text" else len(result["traces"][0]["steps"])


def flags(case: Case) -> list[str]:
    """The options as typed; what a stage returns is written to a file."""
    typed: list[str] = []
    for name, value in case.options.items():
        value = {"confidence": "out.json", "trace": "out.json", "glossary": "terms.tsv"}.get(name, value)
        typed += [flag_of(name)] if value is True else [flag_of(name), str(value)]
    return typed + (["--alignments", "out.json"] if "head" in case.options else [])


def by_command(case: Case, capsys: pytest.CaptureFixture[str]) -> Any:
    Path("in.txt").write_text(f"{case.line}\n")
    assert main(["translate", case.model, "--threads", "1", "--input", "in.txt", *flags(case)]) == 0
    text = capsys.readouterr().out.removesuffix("\n")
    if case.shown == "text":
        return text
    record = json.loads(Path("out.json").read_text().splitlines()[0])
    if case.shown == "alignments":
        return [weight for row in record["matrix"] for weight in row]
    return record["agreement"] if case.shown == "confidence" else len(record["steps"])


def at_prompt(case: Case) -> str:
    typed = iter([*(f":{' '.join(words)}" for words in _pairs(flags(case))), case.line, ":quit"])
    written: list[str] = []
    Prompt(
        Translator(case.model, threads=1), {"search": "beam"}, read=lambda _: next(typed), write=written.append
    ).run()
    return written[-1] if "(" not in written[-1] else written[-2]


def _pairs(words: list[str]) -> Iterator[list[str]]:
    for at, word in enumerate(words):
        if word.startswith("--"):
            following = words[at + 1 : at + 2]
            yield [word[2:], *(f"'{each}'" for each in following if not each.startswith("--"))]


def fields(case: Case) -> dict[str, Any]:
    return {{"tgt": "target", "src": "source"}.get(name, name): value for name, value in case.options.items()}


def by_stream(client: httpx.Client, case: Case) -> Any:
    answer = client.post(
        "/translate/stream", json={"model": case.model, "text": case.line} | alignments(case) | fields(case)
    )
    assert answer.status_code == 200, answer.text
    return shown_over_http(case, json.loads(answer.text.rpartition("data: ")[2]))


def test_the_matrix_has_every_stage(place: Path) -> None:
    assert CASES.keys() == every_stage().keys()
    for stage in every_stage().values():
        assert stage.unavailable.keys() <= {*get_args(Surface)} - {"python", "command", "translate"}
        assert all(stage.unavailable.values())


@pytest.mark.parametrize("name", CASES)
def test_a_stage_is_the_same_on_every_surface(
    name: str,
    client: httpx.Client,
    defaults: dict[str, httpx.Client],
    capsys: pytest.CaptureFixture[str],
    repo_root: Path,
) -> None:
    case, stage = CASES[name], every_stage()[name]
    translated = expected(case)
    wanted = shown(case, translated)
    (plain,) = Translator(case.model, threads=1).translate([case.line], **alignments(case))
    if name == "symbols":
        assert all(wanted.count(each) == 1 for each in ("%s", "{name}"))
        assert {"%s", "{name}"} <= {*translated.src_pieces}
    elif case.shown == "text":
        assert wanted != plain.text
    assert by_command(case, capsys) == wanted
    body = {"model": case.model, "text": case.line} | alignments(case) | fields(case)
    answer = client.post("/translate", json=body)
    assert answer.status_code == 200, answer.text
    assert shown_over_http(case, answer.json()["translations"][0]) == wanted

    if "prompt" in stage.unavailable:
        assert not {flag_of(option) for option in stage.hints} & {*prompt_flags()}
    elif case.shown == "text":
        assert at_prompt(case) == translated.text

    if "stream" in stage.unavailable:
        answer = client.post("/translate/stream", json=body)
        assert answer.status_code == 422
        assert "is not a field of this request" in answer.json()["error"]
    else:
        assert by_stream(client, case) == wanted

    asked = {"q": case.line, "source": "en", "target": "de"}
    if "libretranslate" in stage.unavailable:
        answer = client.post("/translate", json=asked | fields(case))
        assert "requests with q are LibreTranslate's" in answer.json()["error"]
    elif case.libretranslate is not None:
        answer = client.post("/translate", json=asked | case.libretranslate)
        assert case.libretranslate.get("target", translated.text) in (translated.text, "fr")
        assert answer.status_code == 200, answer.text
    else:
        server = defaults[DEFAULTS[name]]
        assert server.post("/translate", json=asked).json()["translatedText"] == translated.text

    pages = "".join(path.read_text(encoding="utf-8") for path in (repo_root / "src" / "web").glob("[b,u]*/*.js"))
    if "page" not in stage.unavailable and stage.hints:
        assert any(option in pages for option in (("targets",) if name == "languages" else stage.hints)) or (
            stage.hints.keys() & default_options().keys()
        )


def test_the_documentation_has_the_matrix(repo_root: Path) -> None:
    rows = []
    for name, stage in every_stage().items():
        if name not in installed_stages():
            cells = [", ".join(f"`{option}`" for option in stage.hints) or f"none ({name})"]
            cells += [stage.unavailable.get(surface, "\u2713") for surface in get_args(Surface)]
            rows.append(f"| {' | '.join(cells)} |")
    assert "\n".join(rows) in (repo_root / "docs" / "search.md").read_text(encoding="utf-8")
