"""Runs that start from the weights of another: its own first validation, and what a resumed run needs."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from softsearch.app.config.composition import composed, contents_of_init, with_model_of_init
from softsearch.app.config.options import Train
from softsearch.app.config.validation import plain, read_options
from softsearch.app.train.init import Adapted
from softsearch.app.train.train import train
from softsearch.errors import CheckpointError, ConfigError
from softsearch.training.checkpoints.checkpoint_contents import read_contents, to_contents
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.checkpoints.folder import average
from tests.support.commands import SMALL

pytestmark = pytest.mark.day


def start(folder: Path, *options: str) -> dict[str, Any]:
    """Trains in ``folder`` and returns the last checkpoint."""
    left_out = ["data."] * ("data=parallel" in options) + ["tokenizer."] * {
        "init.vocabulary=grow",
        "init.vocabulary=own",
    }.isdisjoint(options)
    small = [option for option in SMALL if not option.startswith(tuple(left_out))]
    given = [*small, "trainer.precision=32-true", f"run_dir={folder}", f"cache_dir={folder.parent}", "name=test"]
    train(composed("train", *given, *options))
    return load_checkpoint(folder / "checkpoints" / "last.ckpt")


def test_a_run_starts_from_the_weights_alone_and_resumes_without_them(trained: Path, tmp_path: Path) -> None:
    init = tmp_path / "last.ckpt"
    shutil.copy(trained / "checkpoints" / init.name, init)
    first = load_checkpoint(init)
    rates = ("optimizer.lr=1e-30", "optimizer.matrix_lr=1e-30")
    frozen = start(tmp_path / "frozen", f"init={init}", *rates, "trainer.max_steps=2")
    assert frozen["global_step"] == 2
    assert frozen["state_dict"].keys() == first["state_dict"].keys()
    for name, tensor in frozen["state_dict"].items():
        torch.testing.assert_close(tensor, first["state_dict"][name])

    method = ("method=minimum_risk", "method.samples=2", "batching.sentences=2")  # each of which is translated
    steps = ("trainer.max_steps=4", "trainer.val_check_interval=2")
    risk = (f"init={init}", *method, "loss.per=sentence", "scheduler=constant", *steps)
    whole = start(tmp_path / "whole", *risk)
    start(tmp_path / "parts", *risk, "trainer.max_steps=2", "resume=auto")  # nothing to resume yet
    init.unlink()
    parts = start(tmp_path / "parts", *risk, "resume=auto")
    assert parts["global_step"] == whole["global_step"] == 4
    for name, tensor in parts["state_dict"].items():
        assert torch.equal(tensor, whole["state_dict"][name]), name
    with pytest.raises(CheckpointError, match=r"last\.ckpt does not exist"):
        start(tmp_path / "again", *risk)


def test_the_model_is_that_of_the_run_unless_one_is_typed(trained: Path) -> None:
    config = composed("train", f"init={trained}", "model.encoder.dropout=0.25", "run_dir=run", "cache_dir=cache")
    assert Adapted(read_options(config, Train)).contents is contents_of_init(trained)  # of the file that was read once
    there = read_contents(trained / "checkpoints" / "best.ckpt").config
    assert config.name == there["name"] == "nematus"
    assert plain(config.model) == there["model"] | {"encoder": there["model"]["encoder"] | {"dropout": 0.25}}
    assert config.optimizer.lr == 2e-3  # of configs/recipe/init.yaml
    assert composed("train", f"init={trained}", "name=mine").name == "mine"
    assert "model=init" in with_model_of_init([f"init.ckpt={trained},b"])  # of the first run in a sweep
    assert composed("train", f"init={trained}", "model=gru").model != config.model
    with pytest.raises(CheckpointError, match="does not exist"):
        composed("train", "init=nowhere.ckpt")


def test_other_data_and_other_models_are_refused(trained: Path, tmp_path: Path) -> None:
    init = f"init={trained / 'checkpoints' / 'best.ckpt'}"
    with pytest.raises(CheckpointError, match=r"model\.decoder\.hidden_dim is 16 there, 24 here"):
        start(tmp_path / "run", init, "model.decoder.hidden_dim=24")
    with pytest.raises(CheckpointError, match=r"has another source vocabulary.*init\.vocabulary=own"):
        start(tmp_path / "run", init, "data.reverse_source=true")
    with pytest.raises(ConfigError, match="remove one of them"):
        start(tmp_path / "run", init, f"resume={trained / 'checkpoints' / 'last.ckpt'}")
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize("vocabulary", ["keep", "grow", "own"])
def test_a_run_on_other_text_starts_from_another_and_resumes(vocabulary: str, trained: Path, tmp_path: Path) -> None:
    for side, line in (("en", "a quick fox number {}"), ("de", "ein flinker Fuchs Nummer {}")):
        (tmp_path / f"x.{side}").write_text("\n".join(line.format(n) for n in range(60)) + "\n", encoding="utf-8")
    pair = f"[{tmp_path}/x.en,{tmp_path}/x.de]"
    own = (
        "data=parallel",
        f"data.train={pair}",
        f"data.val={pair}",
        f"data.test={pair}",
        "data.filters.duplicates=false",
    )
    kept = ("freeze=[embeddings]", "trainer.log_every_n_steps=1", "scheduler=constant")
    sized = () if vocabulary == "keep" else ("tokenizer.vocab_size=60",)  # it would change nothing
    options = (*own, f"init={trained}", f"init.vocabulary={vocabulary}", *sized, *kept)
    whole = start(tmp_path / "whole", *options, "trainer.max_steps=4")
    start(tmp_path / "parts", *options, "trainer.max_steps=2", "resume=auto")
    parts = start(tmp_path / "parts", *options, "trainer.max_steps=4", "resume=auto")
    first = load_checkpoint(trained / "checkpoints" / "best.ckpt")
    sizes = [len(c["state_dict"]["model.decoder.embedding.weight"]) for c in (first, whole)]
    assert {"keep": sizes[0] == sizes[1], "grow": sizes[0] < sizes[1], "own": sizes[1] == 60}[vocabulary]
    frozen = "model.decoder.embedding.weight"
    if vocabulary == "keep":
        assert torch.equal(whole["state_dict"][frozen], first["state_dict"][frozen])
    for name, tensor in parts["state_dict"].items():
        assert torch.equal(tensor, whole["state_dict"][name]), name


def test_an_adapter_alone_is_trained_resumes_and_is_merged_where_the_model_is_used(
    trained: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("peft")
    options = (f"init={trained}", "adapter=lora", "adapter.rank=2", "adapter.dropout=0.1", "scheduler=constant")
    options += ("trainer.checkpoint_activations=true",)
    with caplog.at_level("INFO"):
        whole = start(tmp_path / "whole", *options, "trainer.max_steps=4", "trainer.val_check_interval=2")
    said = [record.getMessage() for record in caplog.records]
    assert "trainer.checkpoint_activations=true has no effect: this model has no Transformer layers" in said
    (line,) = (message for message in said if message.startswith("adapter=lora:"))
    adapters = {name: weight for name, weight in whole["state_dict"].items() if ".lora_" in name}
    assert line.startswith(f"adapter=lora: {sum(weight.numel() for weight in adapters.values()):,} of ")
    assert len(whole["optimizer_states"][0]["state"]) == len(adapters)

    start(tmp_path / "parts", *options, "trainer.max_steps=2", "trainer.val_check_interval=2", "resume=auto")
    parts = start(tmp_path / "parts", *options, "trainer.max_steps=4", "trainer.val_check_interval=2", "resume=auto")
    for name, tensor in parts["state_dict"].items():
        assert torch.equal(tensor, whole["state_dict"][name]), name

    first = read_contents(trained / "checkpoints" / "best.ckpt").weights
    last = read_contents(tmp_path / "whole" / "checkpoints" / "last.ckpt")
    changed = {name for name, weight in last.weights.items() if not torch.equal(weight, first[name])}
    bases = {name.replace(".lora_A.default", "").removeprefix("model.") for name in adapters if ".lora_A." in name}
    assert changed == bases
    checkpoints = [tmp_path / "whole" / "checkpoints" / f"step-{step}.ckpt" for step in (2, 4)]
    mean = to_contents(checkpoints[0], average(checkpoints)).weights
    for name, weight in mean.items():
        both = torch.stack([read_contents(path).weights[name].double() for path in checkpoints])
        torch.testing.assert_close(weight.double(), both.mean(0), rtol=0, atol=1e-7)
    with pytest.raises(CheckpointError, match=r"does not fit this run.*adapter\.rank 2 -> 3"):
        start(tmp_path / "parts", *options, "adapter.rank=3", "resume=auto")


def test_an_adapter_needs_a_trained_model_and_layers_that_peft_can_adapt(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("peft")
    with pytest.raises(ConfigError, match="adapter trains updates of a trained model, but init is null; set init=RUN"):
        start(tmp_path / "run", "adapter=lora")
    options = (f"init={trained}", "adapter=lora")
    with pytest.raises(ConfigError, match=r"adapter\.targets has 'recurrent_gate_weight'.*input_projection"):
        start(tmp_path / "run", *options, "adapter.targets=[recurrent_gate_weight]")
    with pytest.raises(ConfigError, match=r"finds no linear layer.*adapter=null"):
        start(tmp_path / "run", *options, "freeze=[encoder,attention,decoder]")
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ConfigError, match=r"adapter=lora needs peft, .*pip install .*\[lora\]'"):
        start(tmp_path / "run", *options)
