"""Decoding speed of the runtime beside CTranslate2 on the same weights, in interleaved rounds.

Both get lines of text and give lines of text, tokenizing included. Batches: two workers of one thread each
(CTranslate2 also one worker of two threads, and one of one), batches of 32 sentences sorted by length. Single: one
sentence after the other on one thread. The best of CTranslate2's settings counts, and ratios are taken within a round.
With ``--length`` every translation has so many tokens, so that the model need not be a trained one.

    python src/export.py ckpt=RUN/checkpoints/best.ckpt out=exports/NAME
    python src/export.py ckpt=RUN/checkpoints/best.ckpt out=exports/NAME-ct2 format=ctranslate2
    python benchmarks/decode_speed.py exports/NAME exports/NAME-ct2 test.en

linguonnx, which translates one sentence after the other, joins in on an export by Optimum of a MarianMT:

    benchmarks/setup_peer.sh optimum; pip install linguonnx==0.14.2a1
    benchmarks/.optimum-venv/bin/python benchmarks/optimum/model.py train.en train.de HF
    benchmarks/.optimum-venv/bin/optimum-cli export onnx --model HF --task text2text-generation-with-past OPTIMUM
    softsearch import HF --out RUN
    python benchmarks/decode_speed.py exports/NAME exports/NAME-ct2 test.en --linguonnx OPTIMUM --length 13
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import onnxruntime
import sentencepiece

from softsearch import Translator
from softsearch.app import describe_machine
from softsearch.text import read_lines

BATCH, SETTINGS = 32, ((1, 1), (2, 1), (1, 2))  # CTranslate2's workers and threads of a worker
Translate = Callable[[Sequence[str]], list[str]]


class CTranslate2:
    """CTranslate2 with the tokenizers in its folder, as its documentation uses it."""

    def __init__(
        self, folder: Path, *, beam: int, workers: int, threads: int, precision: str, single: bool, length: int | None
    ) -> None:
        self.src, self.tgt = tokenizers(folder)
        self.translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=precision, inter_threads=workers, intra_threads=threads
        )
        self.beam, self.batch = beam, 1 if single else BATCH
        self.lengths = (1, 200) if length is None else (length, length)

    def __call__(self, lines: Sequence[str]) -> list[str]:
        """Translate lines."""
        results = self.translator.translate_batch(
            self.src.encode(list(lines), out_type=str),
            beam_size=self.beam,
            max_batch_size=self.batch,
            min_decoding_length=self.lengths[0],
            max_decoding_length=self.lengths[1],
            return_scores=False,
        )
        return [self.tgt.decode(result.hypotheses[0]) for result in results]


def softsearch(
    bundle: Path, *, beam: int, single: bool, budget: int | None, length: int | None, shortlist: int | None = None
) -> Translate:
    """The runtime; ``budget`` are the source tokens of a batch."""
    translator = Translator(
        bundle, threads=1 if single else 2, batch_tokens=budget, shortlist=shortlist, tokenized=True
    )
    search: dict[str, Any] = {"search": "greedy"}
    if beam > 1:
        search = {"search": "beam", "beam": beam, "length_penalty": 1.0}
    if length is not None:
        search |= {"min_length": length, "max_length": length}
    return lambda lines: [translation.text for translation in translator.translate(lines, **search)]


def single_graph(folder: Path, *, beam: int, length: int | None) -> Translate:
    """A folder of ``export.py format=single`` on one thread, one sentence at a time."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "model.onnx", settings, providers=["CPUExecutionProvider"])
    src_pieces, tgt_pieces = tokenizers(folder)
    options = {
        "beam": np.array(beam),
        "n_best": np.array(1),
        "max_length": np.array([length or 0]),
        "length_penalty": np.array(1, np.float32),
    }

    def translate(lines: Sequence[str]) -> list[str]:
        texts = []
        for line in lines:
            src = np.array([[*src_pieces.encode(line), src_pieces.eos_id()]])
            (tokens,) = session.run(["tokens"], {"src_tokens": src, **options})
            texts.append(tgt_pieces.decode(tokens[0, 0].tolist()))
        return texts

    return translate


def linguonnx(folder: Path, *, beam: int, length: int | None) -> Translate:
    """The tokenizer and the search of linguonnx on one thread; with ``length`` the end of the sentence is banned."""
    from linguonnx.translate.decode import GenerationConfig, Seq2SeqDecoder
    from linguonnx.translate.tokenizers import MarianTokenizer

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    pieces = MarianTokenizer(*(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")))
    graphs = (
        onnxruntime.InferenceSession(folder / f"{name}_model.onnx", settings, providers=["CPUExecutionProvider"])
        for name in ("encoder", "decoder", "decoder_with_past")
    )
    decoder = Seq2SeqDecoder(*graphs, eos_id=pieces.eos_id, pad_id=pieces.pad_id, decoder_start_id=pieces.pad_id)
    banned = {pieces.pad_id} if length is None else {pieces.pad_id, pieces.eos_id}
    config = GenerationConfig(max_new_tokens=length or 200, num_beams=beam, banned_token_ids=frozenset(banned))
    return lambda lines: [pieces.decode(decoder.generate(pieces.encode(line), config=config)) for line in lines]


def tokenizers(folder: Path) -> tuple[sentencepiece.SentencePieceProcessor, ...]:
    """The tokenizers of source and target of an exported folder, which may be one."""
    found = ((folder / f"{side}.model", folder / "joint.model") for side in ("src", "tgt"))
    return tuple(
        sentencepiece.SentencePieceProcessor(model_file=str(own if own.exists() else joint)) for own, joint in found
    )


def one_by_one(translate: Translate) -> Translate:
    """The same, sentence after sentence."""
    return lambda lines: [text for line in lines for text in translate([line])]


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("ctranslate2", type=Path)
    parser.add_argument("sources", type=Path, help="sentences, one a line (plain, gzip or xz)")
    parser.add_argument("--precision", choices=("float32", "int8"), default="float32", help="CTranslate2's")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--singles", type=int, default=200, help="sentences that are translated one by one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beams", type=int, nargs="+", default=[5, 1])
    parser.add_argument("--modes", nargs="+", choices=("batches", "single"), default=["batches", "single"])
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--shortlist", type=int, help="also ours with so many frequent words")
    parser.add_argument("--single-graph", type=Path, help="also a folder of export.py format=single, one by one")
    parser.add_argument("--linguonnx", type=Path, help="also linguonnx with a folder of Optimum, one by one")
    parser.add_argument("--length", type=int, help="tokens of every translation")
    return parser.parse_args()


def main() -> None:
    """Measure and print a table."""
    options = parse_options()
    lines = list(islice(read_lines(options.sources), options.sentences))
    print(f"{describe_machine()}, ctranslate2 {version('ctranslate2')}, onnxruntime {version('onnxruntime')}")
    for mode in options.modes:
        for beam in options.beams:
            compare(options, lines if mode == "batches" else lines[: options.singles], mode=mode, beam=beam)


def compare(options: argparse.Namespace, lines: list[str], *, mode: str, beam: int) -> None:
    """Measure one row of the table."""
    single = mode == "single"
    systems: dict[str, Translate] = {
        f"CTranslate2 {workers}x{threads}": CTranslate2(
            options.ctranslate2,
            beam=beam,
            workers=workers,
            threads=threads,
            precision=options.precision,
            single=single,
            length=options.length,
        )
        for workers, threads in (SETTINGS[:1] if single else SETTINGS)
    }
    ours = {"beam": beam, "single": single, "budget": options.batch_tokens, "length": options.length}
    systems["softsearch"] = softsearch(options.bundle, **ours)
    if options.shortlist:
        systems["shortlist"] = softsearch(options.bundle, **ours, shortlist=options.shortlist)
    if single:
        systems = {name: one_by_one(translate) for name, translate in systems.items()}
    if single and options.single_graph:
        systems["single graph"] = single_graph(options.single_graph, beam=beam, length=options.length)
    if single and options.linguonnx:
        systems["linguonnx"] = linguonnx(options.linguonnx, beam=beam, length=options.length)
    _, pieces = tokenizers(options.ctranslate2)
    outputs = {name: translate(lines) for name, translate in systems.items()}  # warms up
    tokens = {
        name: sum(options.length or len(ids) + 1 for ids in pieces.encode(texts)) for name, texts in outputs.items()
    }
    speeds: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(options.rounds):
        for name, translate in systems.items():
            start = time.perf_counter()
            translate(lines)
            speeds[name].append(tokens[name] / (time.perf_counter() - start))
    theirs = [name for name in systems if name.startswith("CTranslate2")]
    best = [max(speeds[name][i] for name in theirs) for i in range(options.rounds)]
    ratios = [own / other for own, other in zip(speeds["softsearch"], best, strict=True)]
    different = sum(a != b for a, b in zip(*(outputs[name] for name in ("softsearch", "CTranslate2 1x1")), strict=True))
    print(f"{mode}, beam {beam}, {len(lines)} sentences, {different} lines differ")
    for name, values in speeds.items():
        print(f"    {name:17} {statistics.median(values):9,.0f} tokens/s ({min(values):,.0f} to {max(values):,.0f})")
    print(
        f"    ratio to the best {statistics.median(ratios):9.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True
    )


if __name__ == "__main__":
    main()
