"""Packages translate as Argos Translate reads them, and their splitter in MiniSBD finds sentences."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import ctranslate2
import pytest
import sentencepiece
from minisbd import SBDetect

from softsearch.errors import ConfigError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.extras.formats.argos import export_argos
from softsearch.extras.formats.splitter import sentence_splitter
from softsearch.models.seq2seq import Seq2Seq
from softsearch.text.tokenizer import Tokenizers
from tests.extras.formats.test_ctranslate2 import joint, make_model, separate  # noqa: F401

pytestmark = pytest.mark.day

TEXT = "Abc def. Ghij? jihg\nfed"
SENTENCES = [["Abc def.", "Ghij? jihg"], ["fed"]]
INSTALLED = """
import sys
from argostranslate import package, translate
package.install_from_path(sys.argv[1])
print([(language.code, language.name) for language in translate.get_installed_languages()])
print(translate.translate(sys.argv[2], "en", "de"))
"""


def export(model: Seq2Seq, tokenizers: Tokenizers, path: Path) -> float:
    return max(export_argos(model, TorchStepFunction(model), tokenizers, ("en", "de"), path).values())


@pytest.fixture(scope="module")
def splitter(tmp_path_factory: pytest.TempPathFactory) -> SBDetect:
    path = tmp_path_factory.mktemp("splitter") / "rules.onnx"
    path.write_bytes(sentence_splitter())
    return SBDetect(str(path), use_gpu=False)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Hello there.", "How are you?", "I am fine!", "It is so.", "Do it.", "Then go."],
        ["Das ist z. B. Dr. Haus am 13. Mai bzw. am 3. Mai.", "Er kam um 5. 20 Leute gingen."],
        ['He said: "Go away."', "Then he left (at last!).", "See www.example.com.", "Now"],
        ["The U.S. Army and G. B. Shaw. then two.", "End"],
        ["我有一只猫。", "你呢？", "「好。」", "他说。"],
        ["मैं हूँ।", "तुम हो।"],
        ["Κάτι έγινε.", "Тут тест."],
        ["x " * 1200 + "done.", "End"],
    ],
)
def test_sentences(splitter: SBDetect, sentences: list[str]) -> None:
    space = "" if "。" in sentences[0] else " "
    assert splitter.sentences(space.join(sentences)) == [sentence.strip() for sentence in sentences]


@pytest.mark.parametrize("own", ["joint", "separate"])
def test_a_package_translates_as_argos_translate_reads_it(
    own: str, splitter: SBDetect, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    tokenizers: Tokenizers = request.getfixturevalue(own)
    model = make_model(tokenizers, "model.embeddings.tie=none")
    path = tmp_path / "new" / "en_de.argosmodel"
    assert export(model, tokenizers, path) < 1e-4
    assert list(path.parent.iterdir()) == [path]
    with ZipFile(path) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "translate-en_de"
    assert json.loads((folder / "metadata.json").read_text()).items() >= {
        ("from_code", "en"), ("from_name", "English"), ("to_code", "de"), ("to_name", "German"), ("type", "translate")
    }  # fmt: skip
    assert [file.name for file in (folder / "minisbd").iterdir()] == ["rules.onnx"]
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(folder / "model"))
    lines = []
    for line, sentences in zip(TEXT.split("\n"), SENTENCES, strict=True):
        assert splitter.sentences(line) == sentences
        pieces = [processor.encode(sentence, out_type=str) for sentence in sentences]
        results = translator.translate_batch(pieces, beam_size=4, length_penalty=0.2, replace_unknowns=True)
        tokens = [token for result in results for token in result.hypotheses[0]]
        text = processor.decode_pieces(tokens).replace("\u2581", " ").removeprefix(" ")
        assert text.strip(" ") == "".join(tokens).replace("\u2581", " ").strip(" ")
        lines.append(text)
    if find_spec("argostranslate"):
        homes = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("DATA", "CONFIG", "CACHE")} | {
            "ARGOS_COMPUTE_TYPE": "float32"
        }
        command = [sys.executable, "-c", INSTALLED, str(path), TEXT]
        done = subprocess.run(command, env=os.environ | homes, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == ["[('en', 'English'), ('de', 'German')]", *lines]


def test_what_is_there_or_does_not_fit_stays(joint: Tokenizers, tmp_path: Path) -> None:  # noqa: F811
    with pytest.raises(ConfigError, match="format=bundle"):
        export(make_model(joint, name="rnnsearch"), joint, tmp_path / "new" / "a.argosmodel")
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.argosmodel").write_text("mine")
    with pytest.raises(ConfigError, match="exists; choose a new file"):
        export(make_model(joint), joint, tmp_path / "a.argosmodel")
    assert (tmp_path / "a.argosmodel").read_text() == "mine"
