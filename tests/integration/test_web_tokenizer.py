"""The tokenizer of the page gives SentencePiece's ids, pieces and texts: 10,000 lines of text and of anything else."""

import io
import json
import random
import shutil
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from softsearch.data.corpora.spellout import Spellout
from softsearch.data.sentencepiece_file import read_pieces, with_folding, with_joiner, with_pieces
from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.text.corpus import is_blank, read_lines
from softsearch.text.moses import detokenize, tokenize
from softsearch.text.tokenizer import JOINER, Kind, SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import with_eos
from tests.support.commands import ROOT

pytestmark = pytest.mark.day

WEB = ROOT / "src" / "web"
ODD = (
    " ", "  ", "a", "B", "1", "\u00bd", "hundred", "Stra\u00dfe", "f\u00fcnf", "<2de>", "</s>", "<unk>", "[UNK]",
    "\u2581", "\t", "\u00a0", "\u3000", "e\u0301", "\u00e9", "\nunk", "\neos", "\0", "\x1f", "\u2028", "\u2585",
    "\ufeff", "\u200d", "\u202e", "\u4e2d\u6587", "\u0e33", "\ufb01", "\U0001f469\u200d\U0001f680", "\U0010fffd", "'s",
    "fu\u0308nf", "\uff48\u00adundred", "n't", " low@@ er ", " .", " ,", "...", "\\", '"', "$&", "$1",
)  # fmt: skip
STACKED = (  # what normalisation meets: marks on marks, letters in parts, and what becomes several characters or none
    "\ufb01\u0301", "a\u0301\u0323", "e\u0302\u0301", "\uff76\uff9e", "\u304b\u3099", "\u1112\u1161\u11ab",
    "\u0e19\u0e49\u0e33", "\ufdfa", "\u00a8", "\u1e9e", "I\u0307", "\u00ad", "\u200b", "\u0085", "\r\n", "\U0001d49c",
    "OLD <SEP>", "<sep>", "man",
)  # fmt: skip
FOREIGN: dict[str, dict[str, Any]] = {  # models of other tools
    "opus": {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc"},
    "words": {"model_type": "word", "normalization_rule_name": "nmt_nfkc_cf"},
    "characters": {"model_type": "char", "normalization_rule_name": "nfkc"},
    "symbols": {
        "model_type": "bpe",
        "normalization_rule_name": "nfkc_cf",
        "user_defined_symbols": ["<SEP>", "<sep>", "man"],
    },
    "no prefix": {"model_type": "unigram", "add_dummy_prefix": False},
    "all spaces": {"model_type": "bpe", "remove_extra_whitespaces": False},
    "suffix": {"model_type": "unigram", "treat_whitespace_as_suffix": True},
    "bare suffix": {"model_type": "bpe", "treat_whitespace_as_suffix": True, "add_dummy_prefix": False},
    "own rules": {"model_type": "unigram", "normalization_rule_tsv": "62\t64\n62 61\t20 41 20\n2019\t\n"},
}
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
  return [ids, own.pieces(ids), own.decode(ids), own.unknown(line), own.normalized(line)];
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


def in_javascript(tokenizer: SentencePieceTokenizer, lines: list[str]) -> list[Any]:
    """The ids, pieces and text of each line, what the vocabulary lacks of it, and how the model reads it."""
    content = tokenizer_files((tokenizer, tokenizer))["tokenizer.json"]
    return run_script(SCRIPT, {"tokenizer": json.loads(content), "lines": lines})


@pytest.mark.parametrize("name", FOREIGN)
def test_models_of_other_tools_are_normalised_by_their_own_rules(
    name: str, corpus: list[str], lines: list[str], tmp_path: Path
) -> None:
    options, model = dict(FOREIGN[name]), io.BytesIO()
    if rules := options.get("normalization_rule_tsv"):
        options["normalization_rule_tsv"] = str(tmp_path / "rules.tsv")
        (tmp_path / "rules.tsv").write_text(rules, encoding="utf-8")
    text = [line for line in [*corpus[:1000], *ODD, *STACKED, "ba\u2019b"] if "\n" not in line]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text),
        model_writer=model,
        vocab_size=400,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    pieces = list(read_pieces(model.getvalue(), name).values())
    ours, rng = SentencePieceTokenizer(with_pieces(model.getvalue(), pieces, name)), random.Random(1)
    mixed = ["".join(rng.choices([*STACKED, *ODD, "ba", "b", "\u2019"], k=rng.randrange(1, 9))) for _ in range(1000)]
    shown = [line for line in [*lines[::10], *mixed] if not is_blank(line)]
    different = []
    for line, found in zip(shown, in_javascript(ours, shown), strict=True):
        ids = with_eos(ours.encode(line))
        if options["model_type"] == "unigram" and sorted(found[0]) == sorted(ids):
            ids = found[0]
        expected = (ids, ours.pieces(ids), ours.decode(ids))
        if found[:3] != expected:
            different.append((line, found, expected))
    assert len(shown) > 1800
    assert not different, f"{len(different)}: {different[:5]}"


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
    ours = SentencePieceTokenizer(with_folding(with_joiner(ours.model, JOINER) if kind == "word" else ours.model))
    different = []
    for line, found in zip(lines, in_javascript(ours, lines), strict=True):
        ids = with_eos(ours.encode(line))
        if kind == "unigram" and sorted(found[0]) == sorted(ids):  # pieces in another order are as likely
            ids = found[0]
        placed = line if kind == "word" else line.replace("\U0010fffd", "\0")  # which stands for a tag in the file
        expected = (ids, ours.pieces(ids), ours.decode(ids), ours.unknown(placed), ours.normalized(placed))
        if found != expected:
            different.append((line, found, expected))
    assert len(lines) == 10_000
    assert not different, f"{len(different)}: {different[:5]}"
