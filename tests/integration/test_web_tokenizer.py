"""The tokenizer of the page gives SentencePiece's ids, pieces and texts: 10,000 lines of text and of anything else."""

import json
import random
import shutil
import subprocess
import unicodedata
from typing import Any

import pytest

from softsearch.data.corpora.spellout import Spellout
from softsearch.data.sentencepiece_file import with_joiner
from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.text.corpus import read_lines
from softsearch.text.moses import detokenize, tokenize
from softsearch.text.tokenizer import JOINER, Kind, SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import with_eos
from tests.integration.commands import ROOT

WEB = ROOT / "src" / "web"
ODD = (
    " ", "  ", "a", "B", "1", "\u00bd", "hundred", "Stra\u00dfe", "f\u00fcnf", "<2de>", "</s>", "<unk>", "[UNK]",
    "\u2581", "\t", "\u00a0", "\u3000", "e\u0301", "\u00e9", "\nunk", "\neos", "\0", "\x1f", "\u2028", "\u2585",
    "\ufeff", "\u200d", "\u202e", "\u4e2d\u6587", "\u0e33", "\ufb01", "\U0001f469\u200d\U0001f680", "\U0010fffd", "'s",
    "n't", " low@@ er ", " .", " ,", "...", "\\", '"', "$&", "$1",
)  # fmt: skip
SPLIT = ["low@@ er new@@ est"] * 300
MOSES = f"""
import {{ readFileSync }} from 'node:fs';
import {{ detokenize, tokenize }} from {json.dumps((WEB / "worker" / "moses.js").as_uri())};
const lines = JSON.parse(readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(lines.map(([line, lang]) => [tokenize(line, lang), detokenize(line)])));
"""
SCRIPT = f"""
import {{ readFileSync }} from 'node:fs';
import {{ TextTokenizer }} from {json.dumps((WEB / "worker" / "tokenizer.js").as_uri())};
const {{ tokenizer, lines }} = JSON.parse(readFileSync(0, 'utf8'));
const own = new TextTokenizer(tokenizer);
const results = lines.map((line) => {{
  const ids = own.encode(line);
  return [ids, own.pieces(ids), own.decode(ids)];
}});
process.stdout.write(JSON.stringify(results));
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    pairs = Spellout(train_size=3000, val_size=20, test_size=20).files(tmp_path_factory.mktemp("cache"))["train"]
    return [line for path in pairs for line in read_lines(path)]


@pytest.fixture(scope="module")
def lines(corpus: list[str]) -> list[str]:
    """6,000 sentences, and 4,000 made of pieces that tokenizers stumble over."""
    rng = random.Random(0)
    words = [*ODD, *corpus[:40]]
    odd = ["".join(rng.choices(words, k=rng.randrange(1, 9))) for _ in range(3000)]
    noise = ["".join(map(chr, rng.choices(range(1, 0xD800), k=rng.randrange(1, 20)))) for _ in range(1000)]
    return [*corpus, *odd, *noise]


def in_javascript(tokenizer: SentencePieceTokenizer, lines: list[str]) -> list[tuple[list[int], list[str], str]]:
    """The ids, pieces and text of each line."""
    content = tokenizer_files((tokenizer, tokenizer))["tokenizer.json"]
    return run_script(SCRIPT, {"tokenizer": json.loads(content), "lines": lines})


def run_script(script: str, given: object) -> list[Any]:
    """What a script writes for its input, both as JSON, with tuples for the lists of a list."""
    if not shutil.which("node") or not (WEB / "node_modules").is_dir():
        pytest.skip("the page's packages are not installed; install Node.js 20 and run `make web`")
    command = ["node", "--input-type=module", "--eval", script]
    done = subprocess.run(
        command, input=json.dumps(given), cwd=WEB, capture_output=True, encoding="utf-8", timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return [tuple(result) for result in json.loads(done.stdout)]


def test_plain_text_has_the_same_tokens_as_in_the_runtime(lines: list[str]) -> None:
    known = [line for line in lines if all(unicodedata.category(character) != "Cn" for character in line)]
    marked = [
        *known,
        "A man's dog, won't 3,5 km at 5 p.m. (\u201eHalt\u201c)\u2026",
        "&apos; s <2de> ca. 10. l'a U.S. x",
    ]
    pairs = [(line, ("en", "de", "fr", "")[number % 4]) for number, line in enumerate(marked)]
    assert run_script(MOSES, pairs) == [(tokenize(line, lang), detokenize(line)) for line, lang in pairs]


@pytest.mark.parametrize("kind", ["word", "char", "bpe", "unigram"])
def test_ids_pieces_and_texts_are_those_of_sentencepiece(kind: Kind, corpus: list[str], lines: list[str]) -> None:
    ours = train_tokenizer([*corpus, *SPLIT], kind=kind, vocab_size=300, tags=["<2de>"])
    ours = SentencePieceTokenizer(with_joiner(ours.model, JOINER)) if kind == "word" else ours
    different = []
    for line, found in zip(lines, in_javascript(ours, lines), strict=True):
        ids = with_eos(ours.encode(line))
        if kind == "unigram" and sorted(found[0]) == sorted(ids):  # pieces in another order are as likely
            ids = found[0]
        expected = (ids, ours.pieces(ids), ours.decode(ids))
        if found != expected:
            different.append((line, found, expected))
    assert len(lines) == 10_000
    assert not different, f"{len(different)}: {different[:5]}"
