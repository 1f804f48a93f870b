"""Import, export, translation and serving of a random NLLB of 600 million parameters: minutes and peak memory; Linux.

    python benchmarks/large_import.py FOLDER                    # 2.5 GB of weights; 20 GB of memory, 15 GB of disk
    python benchmarks/large_import.py FOLDER --width 512 --layers 6 --vocabulary 64000          # a size for a try

Weights are random: neither time nor memory depends on them. The SentencePiece model splits text into the pieces of a
small one, and is filled up with words that no text has. Each command is a process of its own; its peak is that of its
resident memory. Needs ``transformers``.
"""

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import torch

from softsearch.data import Piece, read_pieces, with_pieces
from softsearch.text import train_tokenizer

LETTERS, SENTENCES = "abcdefghijklmnopqrstuvwxyz", 8
SPECIAL = 4  # <s>, <pad>, </s>, <unk>
LANGUAGES = ["eng_Latn", "deu_Latn", "fra_Latn", *(f"{a}{b}x_Latn" for a in LETTERS[:10] for b in LETTERS[:20])][:202]


def write_model(folder: Path, options: argparse.Namespace) -> None:
    """Writes a model as it would be downloaded."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    folder.mkdir(parents=True)
    rng = random.Random(0)
    words = ["".join(rng.choices(LETTERS, k=rng.randint(2, 8))) for _ in range(3000)]
    lines = [" ".join(rng.choices(words, k=rng.randint(3, 9))) for _ in range(5000)]
    small = train_tokenizer(lines, kind="bpe", vocab_size=4000).model
    pieces = [*read_pieces(small, "small").values()]
    missing = options.vocabulary - SPECIAL - len(LANGUAGES) - 1 - len(pieces)
    lowest = min(piece.score for piece in pieces)
    pieces += [Piece(f"\u2581{number:09}", lowest - 1 - number) for number in range(missing)]
    (folder / "sentencepiece.bpe.model").write_bytes(in_fairseq_order(small, pieces))
    tokenizer = {"additional_special_tokens": LANGUAGES, "src_lang": "eng_Latn", "legacy_behaviour": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    for name in ("val.eng_Latn", "val.deu_Latn"):
        (folder.parent / name).write_text("".join(f"{line}\n" for line in lines[:SENTENCES]))
    sizes = {"layers": options.layers, "ffn_dim": 4 * options.width, "attention_heads": options.width // 64}
    both = {f"{side}_{what}": size for side in ("encoder", "decoder") for what, size in sizes.items()}
    tied = not options.untied
    config = M2M100Config(vocab_size=options.vocabulary, d_model=options.width, tie_word_embeddings=tied, **both)
    torch.manual_seed(0)
    model = M2M100ForConditionalGeneration(config)
    with torch.no_grad():  # so that translations end
        model.model.decoder.layer_norm.bias.normal_(std=0.15)
        bias = model.model.decoder.layer_norm.bias
        model.lm_head.weight[2] += 3 * bias / bias.square().sum()
    model.save_pretrained(folder)


def in_fairseq_order(model: bytes, pieces: list[Piece]) -> bytes:
    """A SentencePiece model whose special pieces are those of NLLB-200: <unk>, <s>, </s>."""
    from sentencepiece import sentencepiece_model_pb2 as schema

    proto = schema.ModelProto()
    proto.ParseFromString(with_pieces(model, pieces, "small"))
    for index, (text, kind) in enumerate((("<unk>", 2), ("<s>", 3), ("</s>", 3))):
        proto.pieces[index + 1].piece, proto.pieces[index + 1].type = text, kind
    del proto.pieces[0]
    spec = proto.trainer_spec
    spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id = 0, 1, 2, -1
    spec.unk_piece, spec.bos_piece, spec.eos_piece = "<unk>", "<s>", "</s>"
    return bytes(proto.SerializeToString())


def run(what: str, *command: object, text: str = "", port: int = 0) -> None:
    """Runs a command, or a server at a ``port`` until it has answered, and prints its row of the table."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.close()
    served = 0.0
    if port:
        request(process, port)
        served = sum(map(peak_of, [process.pid, *children(process.pid)]))
        process.terminate()
    _, status, usage = os.wait4(process.pid, 0)
    if status and not port:
        sys.exit(f"{' '.join(map(str, command))} ended with status {status}")
    minutes, peak = (time.perf_counter() - began) / 60, served or usage.ru_maxrss / 2**20
    print(f"| {what} | {minutes:.1f} | {peak:.1f} |", flush=True)


def request(process: subprocess.Popen[bytes], port: int) -> None:
    """Sends one request to the server, once it is ready."""
    body = json.dumps({"text": "ab cd ef", "target": "deu_Latn"}).encode()
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/translate", body, {"Content-Type": "application/json"})
    while process.poll() is None:
        try:
            with urllib.request.urlopen(asked) as answer:  # noqa: S310 - of this machine
                answer.read()
                return
        except urllib.error.HTTPError as error:
            if error.code != 503:  # it is loading
                sys.exit(f"the server answered {error.code}: {error.read().decode()}")
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit("the server ended before it answered")


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def peak_of(pid: int) -> float:
    """The peak of a process's resident memory in GB."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


def main() -> None:
    """Prints a table with a row for each command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="new folder for everything that is made")
    parser.add_argument("--vocabulary", type=int, default=256_206)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12, help="of the encoder, and as many of the decoder")
    parser.add_argument("--untied", action="store_true", help="three matrices of embeddings")
    parser.add_argument("--precisions", default="float32,int8,fp16", type=lambda text: text.split(","))
    options = parser.parse_args()
    folder = options.folder
    if not (folder / "model").exists():
        write_model(folder / "model", options)
    print("| command | minutes | peak GB |\n|---|---|---|", flush=True)
    if not (folder / "run").exists():
        run("import", "-m", "softsearch", "import", folder / "model", "--out", folder / "run")
    lines = (folder / "val.eng_Latn").read_text()
    for precision in options.precisions:
        bundle = folder / precision
        val = () if precision == "float32" else (f"val=[{folder}/val.eng_Latn,{folder}/val.deu_Latn]",)
        given = f"ckpt={folder}/run", f"out={bundle}", f"precision={precision}", "overwrite=true", "max_bleu_loss=100"
        run(f"export, {precision}", "-m", "softsearch", "export", *given, *val)
        size = sum(path.stat().st_size for path in bundle.iterdir()) / 2**30
        translate = "-m", "softsearch", "translate", bundle, "--tgt", "deu_Latn"
        run(f"translate {len(lines.splitlines())} lines, {precision} ({size:.2f} GB)", *translate, text=lines)
        for workers in 1, 2:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            serve = "-m", "softsearch", "serve", bundle, "--port", port, "--workers", workers
            run(f"serve until one answer, {precision}, {workers} workers", *serve, port=port)


if __name__ == "__main__":
    main()
