"""The commands of README.md and docs/, and a folder in which they run in seconds."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from softsearch.data.corpora.spellout import Spellout
from tests.support.commands import ROOT, SERVER, SMALL
from tests.support.huggingface import m2m_folder, marian_folder
from tests.support.marian_equations import write_model

PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
ELSEWHERE = {"docs/recipes.md", "docs/many-hosts.md"}  # tests that look at what the commands write
ALSO_TESTED = (
    "python examples/", "softsearch serve ", "serve run ", "cd my_model ", "softsearch train model=my_model",
    "softsearch train experiment=demo debug=fast",
)  # fmt: skip
OTHERS = (
    "make ", "source ", "pip ", "srun ", "npm ", "python -m http", "python -m hatchling", "python -m venv",
    "python -c ", "argos-translate ", "python benchmarks/", "curl ", "docker ", "jupyter ", "#",
)  # fmt: skip
NOT_OURS = (*OTHERS, *ALSO_TESTED)
SHELL = ("split ", "cat ", "echo ")
ASSETS = ROOT / "src" / "softsearch" / "extras" / "serve" / "web" / "assets"

TRAINING = (
    "tokenizer=word", "tokenizer.vocab_size=80", "batching.tokens=512", "trainer.precision=32-true",
    "trainer.max_steps=2", "trainer.val_check_interval=2", "trainer.log_every_n_steps=1", "callbacks.curves=null",
    "search.max_length_factor=1",
)  # fmt: skip
SMALL_PARTS = [option for option in SMALL if option.endswith("dim=16")]  # of attentional models
SIZES = {  # that go with a word of a training's command
    "data=catalogs": ["data.val=4", "data.test=null", "tokenizer=bpe", "tokenizer.vocab_size=250"],
    "model=rnnsearch": SMALL_PARTS,
    "model=nematus": SMALL_PARTS,
    "model=transformer_tiny": ["model.encoder.num_layers=1", "model.decoder.num_layers=1"],
}
PLACEHOLDERS = {
    "A/best.ckpt": "A.ckpt",
    "B/best.ckpt": "B.ckpt",
    "RUN_A": "logs/train/A",
    "RUN_B": "logs/train/B",
    "RUN_LM": "logs/train/LM",
    "RUN_R2L": "logs/train/R2L",
    "logs/tune/DATE": "logs/tune/last",
    "s3://BUCKET/NAME": "store",
    "/scratch/cache": "cache",
    "postgresql://USER:PASSWORD@HOST/DATABASE": "sqlite:///trials.db",
    "trials=30": "",
    "seed=1,2": "seed=1",
    "model=rnn,lstm,gru,rnnsearch,transformer_tiny": "model=rnn,lstm",
    "model=transformer_base": "model=transformer_base model.encoder.num_layers=1 model.decoder.num_layers=1",
    "claim=vanishing_gradient": "claim=vanishing_gradient dry_run=true",  # test_reproduce.py trains
    "last=5": "last=1",
    "average=5": "average=1",
    "compile=true": "",  # needs a compiler of C++
}
SMALL_DATA = ("data.train_size=60", "data.val_size=8", "data.test_size=8")
CARRIED_OUT = set[tuple[Path, str]]()  # folders and commands


def commands(page: str, title: str = "") -> list[str]:
    """The shell commands of a page, or under one of its headings, one per line and without comments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if title:
        text = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        assert text, title
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    lines = re.sub(r"\s+# .*", "", blocks.replace("\\\n", " "), flags=re.MULTILINE).splitlines()
    typed = [part.strip() for line in lines for part in line.split(";")]
    return [line for line in typed if line and not line.startswith(NOT_OURS)]


def requests(page: str) -> list[tuple[list[str], list[str]]]:
    """The requests of a page to a server on port 8000, as arguments, and the texts in the comments behind them."""
    lines = re.findall(r"^curl .*localhost:8000.*$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    parts = [re.sub(r"(?<=') +# ", "\0", line).partition("\0") for line in lines]
    return [(shlex.split(command), json.loads(f"[{texts}]")) for command, _, texts in parts]


def fields(page: str) -> list[dict[str, Any]]:
    """The fields of requests that a page names with a value, in its sentences and in comments of its commands."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r'(?:`|# )("[a-z_]+": [^`\n]+?)(?:`|$)', text, re.MULTILINE)
    return [json.loads(f"{{{field}}}") for field in found]


def paths(page: str) -> list[tuple[str, str]]:
    """The methods and paths that a page's tables describe; without a method it is GET."""
    rows = re.findall(r"^\| (`(?:GET|POST) /.*?) \|", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    found = [pair for row in rows for pair in re.findall(r"`(?:(GET|POST) )?(/[\w/.]*)`", row)]
    return [(method or "GET", path) for method, path in found]


def ask(server: str, command: list[str]) -> str:
    """The answer to a request, from a server at another address; fails on an error's status."""
    argv = [word.replace("localhost:8000", server) for word in command]
    return subprocess.run([*argv, "--fail-with-body", "-sS"], stdout=subprocess.PIPE, text=True, check=True).stdout


def python_blocks(page: str) -> list[str]:
    """The Python code of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def prepare(folder: Path) -> None:
    """Writes the files, models and bundles that the pages name."""
    corpus = Spellout(src_lang="en", tgt_lang="de", train_size=60, val_size=8, test_size=8).files(folder / "generated")
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "FOLDER" / "experiment").mkdir(parents=True)
    (folder / "FOLDER" / "experiment" / "mine.yaml").write_text("# @package _global_\nname: mine\n")
    for split, names in {"train": ("a", "train"), "val": ("b", "val"), "test": ("c", "x", "test")}.items():
        for path, lang in zip(corpus[split], ("en", "de"), strict=True):
            for name in names:
                (folder / f"{name}.{lang}").write_bytes(path.read_bytes())
            name = "test_2016_flickr" if split == "test" else split
            text = gzip.compress(path.read_bytes())
            (folder / "FOLDER" / f"{name}.lc.tok.{lang}.gz").write_bytes(text)
            for raw in {"en": ("en", "fr"), "de": ("de",)}[lang]:
                (folder / "FOLDER" / f"{name}.{raw}.gz").write_bytes(text)
    for name in ("train", "val"):
        sides = ((folder / f"{name}.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "de"))
        table = "\n".join(["en\tde", *map("\t".join, zip(*sides, strict=True)), ""]).encode()
        (folder / f"{name}.tsv").write_bytes(table)
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress(table))
    (folder / "DATASET").mkdir()
    for split, name in (("train", "train"), ("validation", "val"), ("test", "test")):
        sides = ((folder / f"{name}.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "de"))
        rows = (
            json.dumps({"translation": dict(zip(("en", "de"), pair, strict=True))}) for pair in zip(*sides, strict=True)
        )
        (folder / "DATASET" / f"{split}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    for name in ("in.txt", "x.fr"):
        (folder / name).write_bytes((folder / "x.en").read_bytes())
    for name, size in (("a", 60), ("b", 8)):
        np.save(folder / f"{name}.npy", np.zeros((size, 2, 512), dtype=np.float16))
    for name in ("moses.de", "ours.de"):
        (folder / name).write_bytes((folder / "x.de").read_bytes())
    (folder / "train.fr").write_bytes((folder / "train.en").read_bytes())
    for name in ("de", "new.po"):
        (folder / name).symlink_to(ROOT / "examples" / "catalogs" / name)
    (folder / "sentences.txt").write_text("one\n")
    (folder / "terms.tsv").write_text("one\teins\n")
    (folder / "page.html").write_text("<p>one</p>\n")
    (folder / "FILE").write_text("\n" * (folder / "x.en").read_text().count("\n"))
    data = "data=parallel data.train='[a.en,a.de]' data.val='[b.en,b.de]' data.test='[c.en,c.de]'"
    models = {
        "A": "model=rnnsearch",
        "B": "model=rnn",
        "LM": "model=rnnlm",
        "R2L": "model=rnn data.target_direction=r2l",
        "TRANSFORMER": "model=transformer_tiny",
    }
    lines = [f"python src/train.py {model} {data} hydra.run.dir=logs/train/{name}" for name, model in models.items()]
    bundles = (name for name in models if name != "TRANSFORMER")
    lines += [f"python src/export.py ckpt=logs/train/{name}/checkpoints/best.ckpt out={name}" for name in bundles]
    carry_out(lines, folder)
    for name in models:
        (folder / f"{name}.ckpt").write_bytes(
            (folder / "logs" / "train" / name / "checkpoints" / "best.ckpt").read_bytes()
        )
    sides = tuple((folder / f"a.{lang}").read_text().splitlines() for lang in ("en", "de"))
    marian_folder(folder / "opus-mt-en-de", sides)
    m2m_folder(folder / "nllb-200-distilled-600M", [line for side in sides for line in side])
    write_model(folder / "marian-en-de", {"tied-embeddings-all": True}, joint=True)
    (folder / "exports").mkdir(exist_ok=True)
    (folder / "exports" / "C").symlink_to(Path("..", "A"))
    (folder / "RUN").symlink_to(Path("logs", "train", "A"))


def carry_out(lines: list[str], folder: Path, training: tuple[str, ...] = TRAINING) -> None:
    """Runs commands in order, those of several pages once; training gets small sizes, everything else is as typed."""
    for line in lines:
        if (folder, line) in CARRIED_OUT:
            continue
        CARRIED_OUT.add((folder, line))
        if line.startswith("softsearch web") and not (ASSETS / "index.html").is_file():
            continue  # a clone without Node.js
        if "HOST:" in line or "=HOST" in line:
            continue  # the same command on several hosts
        if line.startswith(SHELL):
            path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
            subprocess.run(line, shell=True, cwd=folder, check=True, env=os.environ | {"PATH": path})
            continue
        argv, stdin, stdout = _arguments(line, training)
        began = time.time()
        done = SERVER.run(argv, cwd=folder, stdin=stdin, stdout=stdout, env={"SOFTSEARCH_CACHE": str(folder / "cache")})
        if _trains(argv):  # folders of runs are named by the second
            time.sleep(max(0.0, began + 1 - time.time()))
        assert done.returncode == 0, (line, done.stdout[-3000:] + done.stderr[-3000:])


def _trains(words: list[str]) -> bool:
    return words[0] == "src/train.py" or words[:2] == ["softsearch", "train"]


def _arguments(line: str, training: tuple[str, ...]) -> tuple[list[str], str, str]:
    """The argument list of a command, and the files of ``<`` and ``>``."""
    for placeholder, path in PLACEHOLDERS.items():
        line = line.replace(placeholder, path)
    words = shlex.split(line)
    files = {"<": "in.txt", ">": ""}
    for sign in files:
        if sign in words:
            index = words.index(sign)
            files[sign] = words[index + 1]
            del words[index : index + 2]
    words = words[1:] if words[0] == "python" else words
    if _trains(words):
        words = [word for word in words if not word.startswith("trainer=")]
        keeps = any(word.startswith("init=") for word in words) and not any(
            "init.vocabulary=" in word for word in words
        )
        training = tuple(word for word in training if not (keeps and word.startswith("tokenizer.vocab_size=")))
        words += [*training, "trainer=cpu", *(size for word in words for size in SIZES.get(word, ()))]
        given = [word for word in words if word.startswith("data=")]
        words += SMALL_DATA if given in ([], ["data=shapes"]) and "data.root" not in line else []
        words += ["--cfg", "job"] if words[1:3] == ["model=rnnsearch", "data=multi30k"] and "FOLDER" not in line else []
    elif words[0] == "src/export.py":
        words += ["overwrite=true"]  # pages export to the same folder
    elif words[:2] == ["softsearch", "sweep"]:
        words += ["trials=1", f"overrides={[*TRAINING, *SMALL_DATA, 'trainer=cpu']}"]
    elif words[:2] == ["softsearch", "tune"]:
        words += ["searches=2", f"hydra.run.dir=logs/tune/{'last' if 'language_model' in line else 'another'}"]
    return words, files["<"], files[">"]
