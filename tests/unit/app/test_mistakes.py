"""What a person may mistype at a command is answered in one line, most of it before the lab is imported."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from tests.support.commands import SERVER
from tests.support.programs import run_python

GPU = bool(torch.cuda.is_available() or torch.backends.mps.is_available())
ROOT = Path(__file__).parents[3]
TYPED = """
import io, json, resource, sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from softsearch.app.config.command import run
from softsearch.commands import named

def answer(command, options, work):
    sys.argv = [f"{command}.py", *options]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        try:
            run(replace(named(command), run=work or named(command).run))
        except SystemExit as end:
            return end.code, said.getvalue()
        except BaseException as error:
            return repr(error), said.getvalue()
    return "it ran", said.getvalue()

work, full_disk, cases = json.loads(sys.argv[1])
if full_disk:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file can grow
answers = [answer(command, options, work) for command, *options in cases]
print(json.dumps([answers, "lightning" in sys.modules]))
"""


class Answer(NamedTuple):
    code: int | str
    said: str


def typed(
    folder: Path, cases: list[tuple[str, ...]], work: str = "no.such:work", *, full_disk: bool = False
) -> tuple[list[Answer], bool]:
    """Types commands, one after the other in one process; says too whether the lab was imported."""
    lines = [(*case, *(f"hydra.run.dir={folder / 'run'}" for _ in [0] if not _flags_or_dir(case))) for case in cases]
    variables = {
        "OMP_NUM_THREADS": "1",
        "SOFTSEARCH_CACHE": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    arguments = json.dumps([work, full_disk, lines])
    if work == "no.such:work":
        done = run_python("-c", TYPED, arguments, cwd=folder, **variables)
    else:  # by a process that has the lab
        (script := folder / "typed.py").write_text(TYPED)
        done = SERVER.run([str(script), arguments], cwd=folder, env=variables)
    assert done.returncode == 0, done.stderr
    answers, lab = json.loads(done.stdout)
    return [Answer(*answer) for answer in answers], lab


def _flags_or_dir(case: tuple[str, ...]) -> bool:
    return any(option.startswith(("-", "hydra.run.dir")) for option in case[1:])


def expect(cases: list[tuple[int, str, str]], answers: list[Answer]) -> None:
    for (code, line, message), answer in zip(cases, answers, strict=True):
        assert (answer.code, message in answer.said) == (code, True), (line, answer)
        assert answer.said.startswith("error: "), (line, answer)
        assert answer.said.count("\n") == 1 or " options are wrong:\n" in answer.said, (line, answer)
        assert len(answer.said) < 1000, (line, answer)


BEFORE_THE_LAB = [
    (2, "train experiment=nope", "there is no experiment=nope; there are: bahdanau2015"),
    (2, "train experiment=demoo", "there is no experiment=demoo; did you mean 'demo'?"),
    (2, "train launcher=joblb", "there is no launcher=joblb; did you mean 'joblib'?"),
    (2, "train recipe=nope", "there is no recipe=nope; there are: chorowski2015, "),
    (2, "train recipe=rnnserch model=transformer_base", "there is no recipe=rnnserch; did you mean 'rnnsearch'?"),
    (2, "train method/decay=linea method=scheduled_sampling", "there is no method/decay=linea; did you mean 'linear'?"),
    (2, "train model=", "there is no model=; there are: chorowski2015"),
    (2, "train nope=1", "there is no config key 'nope'"),
    (2, "train data=parallel data.train=[ a.en,a.fr ]", "write data.train='[a.en,a.fr]'"),
    (2, "train model=rnn,gru", "has several values; write python src/train.py -m model=rnn,gru for one run each"),
    (2, "train data=parallel data.train=a.en,a.de", "write data.train='[a.en,a.de]' for a list, or python src/"),
    (2, "train seed=range(1,4)", "src/train.py -m seed='range(1,4)' for one run each"),
    (2, "train model=bahdanau2015", "there is no model=bahdanau2015; write experiment=bahdanau2015"),
    (2, "train experiment=rnnsearch", "there is no experiment=rnnsearch; write model=rnnsearch"),
    (2, "train model=Transformer", "did you mean 'transformer_tiny', 'transformer_base' or 'transformer_big'?"),
    (2, "train optimizer=AdamW", "did you mean 'adamw'?"),
    (2, "train tokenizer=sentencepiece", "did you mean 'bpe' or 'unigram'?"),
    (2, "train trainer.gpus=1", "did you mean 'trainer.devices'?"),
    (2, "train ckpt_path=x", "write init=RUN"),
    (2, "train tags=[x]", "did you mean 'name'?"),
    (2, "train output_dir=x", "write hydra.run.dir=FOLDER"),
    (2, "train --device cuda", "write trainer=cpu or trainer=gpu"),
    (2, "train --experiment smallest", "write experiment=smallest"),
    (2, "train smallest", "'smallest' is not key=value; write experiment=smallest"),
    (2, "train overwrite", "'overwrite' is not key=value; write overwrite=true"),
    (2, "train resume=true", "resume is True (bool), expected 'auto' or a path or null; write resume=auto"),
    (2, "train debug", "'debug' is not key=value; write debug=NAME, one of fast, lr"),
    (2, "train model = rnn", "write model=rnn without spaces"),
    (2, "train name=my first", "write name='my first' if it belongs to the previous word"),
    (2, "train model=rnnsearch,", "write model=rnnsearch"),
    (2, "train +model=rnn", "model has a choice already; write model=rnn"),
    (2, "train device=cpu", "write trainer=cpu"),
    (2, "train data=/home/me/x", "there is no data=/home/me/x; data is the kind of corpus; there is no file "),
    (2, "train model=lstm model.hidden=64", "did you mean 'model.hidden_dim'?"),
    (2, "train callbacks.early_stopping=false", "write callbacks.early_stopping=null"),
    (2, "train nothing", "'nothing' is not key=value; python src/train.py --help lists the keys"),
    (2, "train search.num_beams=3", "did you mean 'search.beam'?"),
    (2, "train --config-name=mine", "write experiment=mine"),
    (2, "evaluate RUN ckpt_path=x", "did you mean 'ckpt'?"),
    (2, "evaluate RUN metric=comet", "examples/neural_metric shows how to add one"),
    (2, "evaluate RUN metric=BLEU", "did you mean 'bleu'?"),
    (2, "export RUN quantize=true", "write precision=int8"),
    (2, "export a b c", "'c' is one word too many; expected softsearch export ckpt=... out=..."),
    (2, "train +nope=1", "nope is not an option of train"),
    (2, "train ++sed=1", "sed is not an option of train: did you mean 'seed'?"),
    (2, "train +vectors.x=1", "vectors.x is not an option of vectors: there are: src, tgt"),
    (2, "train +callbacks.mine=1", "callbacks.mine is 1 (int), expected a section with a _target_ or null"),
    (2, "train seed=-1", "seed is -1 (int), expected a whole number of at least 0 and at most 4294967295"),
    (2, f"train seed={10**20}", f"seed is {10**20} (int), expected a whole number of at least 0"),
    (2, "train resume=5", "resume is 5 (int), expected 'auto' or a path or null"),
    (2, "train cache_dir=5", "cache_dir is 5 (int), expected a path"),
    (2, "train vectors=null", "vectors is None (NoneType), expected a section of src, tgt"),
    (1, "train run_dir=/dev/null/x", "run_dir is '/dev/null/x', which cannot be written (Not a directory)"),
    (1, "train hydra.run.dir=/dev/null/x", "the run's folder cannot be written: /dev/null/x: Not a directory"),
    *(
        (2, f"train {group}=null", f"{group} is null, expected one of")
        for group in ("data", "model", "optimizer", "logger", "callbacks", "scheduler", "loss", "method", "trainer",
                      "tokenizer", "batching", "search")
    ),
    (2, "train ~data", "data is null, expected one of catalogs, features, features_beside_text, "),
    (2, "train model=5", "model is 5, expected one of chorowski2015, "),
    (2, "train =5", "'=5' has no key; write key=value"),
    (2, "train data=parallel", "data.train is required; for example data.train='[train.en,train.de]'"),
    (2, "train data=parallel data.train=[a.en,a.de]", "or data.val=2000 to split it off the training text"),
    (2, "train data.train=[a.en,a.de]", "data.val is required; for example data.val='[val.en,val.de]'"),
    (2, "train data.train=a.tsv.gz data.val=0.1", "data.src is required; for example data.src=1 data.tgt=2"),
    (2, "prepare data.train=a.tmx data.val=x.tmx", "data.src is required; for example data.src=1 data.tgt=2"),
    (2, "train data.hub=a/b", "data.src is required"),
    (2, "train optimizer.lrr=3", "there is no config key 'optimizer.lrr'; did you mean 'optimizer.lr'?"),
    (2, "train model=luong2015 model.decoder.attention.scor=dot", "did you mean 'model.decoder.attention.score'?"),
    (2, "train model/attention=hybrd", "there is no model/attention=hybrd; did you mean 'hybrid'?"),
    (2, "train data=multi_source data.sources.en={size:60}",
     "no config key 'data.sources.en.size', and data.sources.en={...} changes only keys that exist; to replace the "),
    (2, "train model=lstm model/attention=hybrid", "model/attention chooses a part that model=lstm does not have"),
    (2, "train seed=[1", "'seed=[1' cannot be read"),
    (2, "train --model rnnsearch", "there is no option --model, because options are written as key=value; write mod"),
    (2, "train --model=rnnsearch seed=1", "write model=rnnsearch"),
    (2, "train --run-dir seed=1", "write run_dir=VALUE"),
    (2, "train --hlep", "there is no option --hlep; did you mean --help?"),
    (2, "train lr=0.1", "there is no config key 'lr'; did you mean 'optimizer.lr'?"),
    (2, "train learning_rate=0.1", "did you mean 'optimizer.lr'?"),
    (2, "train epochs=3", "did you mean 'trainer.max_epochs'?"),
    (2, "train batch_size=32", "did you mean 'batching.tokens'?"),
    (2, "train gpus=2", "did you mean 'trainer.devices'?"),
    (2, "train model=[rnn,gru]", "model is ['rnn', 'gru'], expected one of chorowski2015, "),
    (2, "train -m model=[rnn,gru]", "set model=NAME, or -m model=NAME,NAME for one run each"),
    (2, "train --cfg nope", "argument --cfg/-c: invalid choice: 'nope'"),
    (2, "train -m --cfg job", "only one of --run, --multirun"),
    (2, "evaluate model=lstm",
     "model is an option of train, and a checkpoint keeps its own value; a trained one is ckpt=RUN; evaluate has "),
    (2, "evaluate model.encoder.dropout=0", "model.encoder.dropout is an option of train, and a checkpoint keeps"),
    (2, "evaluate data.root=x", "there is no data.root while data is null; add data=NAME, one of catalogs, features, "),
    (2, "evaluate ckptt=x", "there is no config key 'ckptt'; did you mean 'ckpt'?"),
    (2, "evaluate average=0", "average is 0 (int), expected a whole number of at least 1 or null"),
    (2, "evaluate shortlist.frequent=x", "shortlist.frequent is 'x' (str), expected a whole number"),
    (2, "evaluate guard=[a.en,a.de]",
     "guard is ['a.en', 'a.de'], expected a section of old, max_loss; write guard.old='[a.en,a.de]'"),
    (2, "evaluate guard=3", "guard is 3 (int), expected a section of old, max_loss; write guard.max_loss=3"),
    (2, "train vectors=a.vec", "vectors is 'a.vec' (str), expected a section of src, tgt; write vectors.src=a.vec"),
    (2, "evaluate test=a.en", "test is 'a.en' (str), expected a list, each a path or null; write test='[a.en]'"),
    (2, "score tokens=5", "tokens is 5 (int), expected true or false"),
    (2, "tune ensemble=mean", "ensemble is 'mean' (str), expected one of 'log_probs', "),
    (2, "export ckpt=a.ckpt", "out is required; for example out=exports/NAME"),
    (2, "compare runs=5", "runs is 5 (int), expected a path or a list, each a path"),
    (2, "prepare processes=0", "processes is 0 (int), expected a whole number of at least 1 or null"),
]  # fmt: skip
BEFORE_THE_DATA = [
    (2, "train +optimizer.lrr=3", "optimizer.lrr is not an option of Adam: did you mean 'lr'?"),
    (2, "train optimizer.lr=abc", "optimizer.lr is 'abc' (str), expected a number"),
    (2, "train model.decoder.dropout=1.5", "dropout is 1.5 (float), expected a number of at least 0 and less than 1"),
    (1, "train resume=nowhere.ckpt", "resume=nowhere.ckpt: no such file"),
    (2, "train trainer.max_steps=lots", "error: trainer.max_steps is 'lots', but the schedule or the validations"),
    (2, "train data=parallel data.train=a.tsv data.val=[a,b]", "data.train is 'a.tsv', a table; write data=table "),
    (2, "train trainer.val_check_interval=0", "trainer.val_check_interval is 0 (int), expected a whole number of at"),
    (2, "train trainer.accumulate_grad_batches=0", "trainer.accumulate_grad_batches is 0 (int), expected a whole "),
    (2, "train trainer.log_every_n_steps=0", "trainer.log_every_n_steps is 0 (int), expected a whole number of at le"),
    (2, "train trainer.gradient_clip_val=-1", "trainer.gradient_clip_val is -1 (int), expected a number of at least 0"),
    (2, "train trainer.max_time=abc", "trainer.max_time is 'abc', expected a time of more than nothing, such as 5m"),
    *((2, "train trainer=gpu", "trainer.accelerator is 'gpu', but PyTorch finds no GPU; set trainer=cpu")
      for _ in [0] if not GPU),
    (2, "train trainer.devices=0", "trainer.devices is 0, expected at least 1 process; for the CPU set trainer=cpu"),
    (2, "train experiment=demo model=gru", "experiment=demo sets it for another model than model=gru, leave one out"),
    (2, "train trainer.val_check_interval=0.01", "trainer.val_check_interval is 0.01, a share of an epoch, but valida"),
    (2, "train +trainer.foo=1", "trainer.foo is not an option of Trainer"),
    (2, "train callbacks.early_stopping.patience=-1", "callbacks.early_stopping.patience is -1 (int), expected a who"),
    (2, "train callbacks.early_stopping.monitor=val/blue", "callbacks.early_stopping.monitor is 'val/blue', expected "),
    (2, "train callbacks.best.monitor=bleu", "callbacks.best.monitor is 'bleu', expected one of val/bleu"),
    (2, "train scheduler=plateau scheduler.monitor=loss", "scheduler.monitor is 'loss', expected one of val/bleu"),
    (2, "train callbacks.translate=null", "callbacks.early_stopping.monitor is 'val/bleu', expected one of val/loss"),
    (2, "train search.beam=100000", "search.beam is 100000 (int), expected a whole number of at least 1"),
    (2, "train search.max_length_factor=1e30", "search.max_length_factor is 1e+30 (float), expected a number"),
    (2, "train model.encoder.hidden_dim=0", "model.encoder.hidden_dim is 0 (int), expected a whole number of at least"),
    (2, "train model=transformer_tiny model.decoder.num_layers=0", "model.decoder.num_layers is 0 (int), expected a w"),
    (2, "train model=kalchbrenner2013 model.encoder.max_src_len=-1", "model.encoder.max_src_len is -1 (int), expected"),
    (2, "train model.embeddings.dim=32", "found model.embeddings.dim=32 and the decoder's readout.dim=256; set read"),
    (2, "train model=nematus model.embeddings.dim=32", "set readout.dim=32 there, "),
    (2, "train model=lstm model.embeddings.dim=32", "set hidden_dim=32 there, "),
    (2, "train loss=class_factored model.embeddings.output_layer.num_classes=9999", "num_classes is 9999, expected at"),
    (2, "train model=gao2020 model.encoder.convolution_widths=[3,4]", "convolution_widths is [3, 4], expected odd wi"),
    (2, "train +model.encoder.cell.reset=before model.encoder.cell._target_=softsearch.models.LSTMCell",
     "model.encoder.cell.reset is not an option of LSTMCell: "),
    (2, "train model=ngram resume=last.ckpt", "counted from the data, not trained; type softsearch count"),
    (2, "train model=ngram seed=2 init=last.ckpt", "not trained; type softsearch count"),
    (2, "count model=gru seed=2", "RecurrentDecoder is trained, not counted; type softsearch train "),
    (2, "train optimizer.lr=x search.beam=0 callbacks.last.keep=0", "3 options are wrong:"),
    (2, "train optimizer.lr=nan", "optimizer.lr is nan (float), expected"),
    (2, "train optimizer.betas=[0.9]", "optimizer.betas is [0.9] (list), expected a list of a number"),
    (2, "train optimizer.lr=-1", "optimizer: Invalid learning rate: -1"),
    (2, "train search.banned=[a]", "search.banned is ['a'] (list), expected a list, each a whole number"),
    (2, "train optimizer=muon optimizer.matrix_lr=1e300", "matrix_lr is 1e+300 (float), expected a number of more"),
]  # fmt: skip


@pytest.mark.day
def test_most_is_known_before_the_lab_is_imported(tmp_path: Path) -> None:
    """Fault: wrong usage of a command, or options of another toolkit such as `lr` and `epochs`.

    Effect: exit code 2, and the closest command, option or key.
    """
    answers, lab = typed(tmp_path, [tuple(line.split()) for _, line, _ in BEFORE_THE_LAB])
    expect(BEFORE_THE_LAB, answers)
    assert not lab


@pytest.mark.day
def test_the_rest_is_known_before_the_data_are_prepared(tmp_path: Path) -> None:
    short = ("data.train_size=20", "data.val_size=2", "data.test_size=2", "trainer.max_steps=1")  # should one run
    lines = []
    for command, *options in (line.split() for _, line, _ in BEFORE_THE_DATA):
        lines.append((command, *(short[3:] if "data=parallel" in options else short), *options))
    answers, _ = typed(tmp_path, lines, work="")  # that of each command
    expect(BEFORE_THE_DATA, answers)
    assert not (tmp_path / "cache").exists()


def test_a_run_on_a_full_disk_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    answers, lab = typed(tmp_path, [("train", f"hydra.run.dir={folder}"), ("compare", "runs=a")], full_disk=True)
    expect([(1, "train", "which cannot be written (File too large)"), (1, "compare", "cannot be written")], answers)
    assert not lab


@pytest.mark.usefixtures("sigint")
@pytest.mark.parametrize(("module", "number"), [("omegaconf", "SIGINT"), ("torch", "SIGINT"), ("torch", "SIGTERM")])
def test_a_signal_while_imports_run_leaves_no_traceback(module: str, number: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", str(ROOT / "src" / "train.py"), f"hydra.run.dir={tmp_path / 'run'}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "SOFTSEARCH_CACHE": str(tmp_path / "cache")},
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:  # a line for each module that has been imported, those within it first
            if f" {module}." in line:
                process.send_signal(signal.Signals[number])
                break
        rest = process.stderr.read()
    assert process.returncode == 128 + signal.Signals[number]
    assert [line for line in rest.splitlines() if not line.startswith("import time:")] == []
