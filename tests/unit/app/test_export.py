"""What cannot be exported is refused before any work: before the checkpoint, which does not exist, is looked for."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.export import export
from softsearch.app.train.train import train
from softsearch.doors import with_public_names
from softsearch.errors import BundleError, CheckpointError, ConfigError
from softsearch.runtime.bundle import Bundle
from softsearch.training.checkpoints.checkpoint_contents import ORIGIN
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.small_runs import configure_run
from tests.support.written import save_unchecked

GOLDEN = Path(__file__).parents[2] / "golden" / "checkpoint.ckpt"
PARALLEL, MULTI_SOURCE = "softsearch.data.Parallel", "softsearch.data.MultiSource"
MULTI30K = "softsearch.data.Multi30k"
OWN_DECODERS = """
from softsearch.models.luong import LuongDecoder

class Plain(LuongDecoder):
    pass

class Branching(LuongDecoder):
    def step(self, tokens, state):
        assert float(state.memory.states.sum()) != 1
        return super().step(tokens, state)
"""
UNEXPORTABLE = [
    (["search=rerank", "search.models=[nowhere]"], "a bundle cannot recommend search=rerank, which needs other models"),
    (["search.max_length_factor=200"], "search.max_length_factor is 200, expected at most 10 in a bundle"),
    (["search.beam=500"], "search.beam is 500, expected at most 100 in a bundle"),
    (["search=exact", "search.max_nodes=1000000000"], "search.max_nodes is 1000000000, expected at most 1000000"),
]
OUT_OF_RANGE = (["search=sample", "search.top_k=10000000"], "search.top_k is 10000000")  # for every command


def exported(folder: Path, *options: str) -> None:
    config = composed("export", f"ckpt={folder}/no.ckpt", f"out={folder}/out", f"cache_dir={folder}", *options)
    export(read_options(config, Export))


@pytest.mark.parametrize(("options", "message"), [*UNEXPORTABLE, OUT_OF_RANGE])
def test_a_search_that_no_bundle_recommends(tmp_path: Path, options: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        exported(tmp_path, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["search=sample"], "format=single does not support Sampling"),
        (["search.coverage_penalty=0.2"], "format=single does not support search.coverage_penalty=0.2"),
        (["shortlist=10"], "format=single does not support shortlist=10"),
    ],
)
def test_what_a_single_graph_cannot_do(tmp_path: Path, options: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        exported(tmp_path, "format=single", *options)


@pytest.mark.parametrize("form", ["bundle", "single", "ctranslate2"])
def test_a_used_folder_is_replaced_only_if_asked(form: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if form == "ctranslate2":
        out.mkdir()
        (out / "model.bin").write_bytes(b"x")
    else:
        shutil.copytree(GOLDEN.with_name("bundle"), out)
    with pytest.raises(ConfigError, match="out exists; set overwrite=true to replace it, or choose another out"):
        exported(tmp_path, f"format={form}")
    with pytest.raises(CheckpointError, match=r"no\.ckpt"):  # it goes on to the checkpoint
        exported(tmp_path, f"format={form}", "overwrite=true")


def test_a_single_graph_and_what_to_do_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softsearch.export.graphs._export_greedy", None)  # it is not traced, as nothing needs it
    out = tmp_path / "out"
    options = ["format=single", "search.beam=4", "search.max_length_factor=1.5"]
    export(read_options(composed("export", f"ckpt={GOLDEN}", f"out={out}", f"cache_dir={tmp_path}", *options), Export))
    printed = capsys.readouterr().out
    assert f"next: softsearch web {out} --out out-site\nfor other programming languages: {out}/README.md" in printed
    bundle = Bundle.open(out)
    assert bundle.manifest.is_single
    assert bundle.files.keys() == {"README.md", "joint.model", "model.onnx", "tokenizer.json"}
    assert (bundle.manifest.search["beam"], bundle.manifest.search["max_length_factor"]) == (4, 1.5)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.day
def test_paths_of_the_training_machine_stay_there(tmp_path: Path) -> None:
    parallel = {"_target_": PARALLEL, "src_lang": "en", "tgt_lang": "de"}
    files = {split: [f"/home/me/{split}.en", f"mine-{split}.de"] for split in ("train", "val")}
    checkpoint = load_checkpoint(GOLDEN)
    checkpoint[ORIGIN]["config"] |= {
        "data": {
            "_target_": MULTI_SOURCE,
            "src_lang": "en+fr",
            "tgt_lang": "de",
            "sources": {"en": parallel | files, "fr": parallel | files},
        },
        "optimizer": {"_target_": "mine.Adam", "lr": 0.1, "betas": [0.9, 0.98], "table": "/home/me/table.npy"},
        "scheduler": {"_target_": "mine.plateau", "monitor": "val/bleu", "tables": [["home/me/table.npy"]]},
    }
    save_unchecked(checkpoint, tmp_path / "changed.ckpt")
    options = (f"ckpt={tmp_path}/changed.ckpt", f"out={tmp_path}/out", f"cache_dir={tmp_path}")
    export(read_options(composed("export", *options), Export))
    config = json.loads((tmp_path / "out" / "manifest.json").read_text())["training"]["config"]
    assert config["data"] == {
        "_target_": MULTI_SOURCE,
        "src_lang": "en+fr",
        "tgt_lang": "de",
        "sources": {"en": parallel, "fr": parallel},
        "text_form": "plain",
    }
    assert config["optimizer"] == {"_target_": "mine.Adam", "lr": 0.1, "betas": [0.9, 0.98]}
    assert config["scheduler"] == {"_target_": "mine.plateau", "monitor": "val/bleu"}
    assert config["model"] == with_public_names(checkpoint[ORIGIN]["config"]["model"])
    assert all(b"/home/me" not in path.read_bytes() for path in (tmp_path / "out").iterdir())


OWN_FORMAT = """
import numpy as np
from softsearch.errors import BundleError
from softsearch.export.format import ExportFormat, ExportSummary
from softsearch.export.parity import compare, random_sentences, stepping


class Weights(ExportFormat):
    name = "weights"

    def write(self, inputs, out):
        src = random_sentences((1, 5), inputs.tokenizers[0].vocab_size, inputs.max_src_tokens)
        parity = compare(stepping(inputs.exact()), stepping(inputs.reference), src)
        np.savez(out, **{name: weight.numpy() for name, weight in inputs.model.state_dict().items()})
        return ExportSummary(backend="NumPy", parity=parity, following="numpy.load")
"""


def test_a_format_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_format.py").write_text(OWN_FORMAT)
    (tmp_path / "configs" / "format").mkdir(parents=True)
    (tmp_path / "configs" / "format" / "weights.yaml").write_text("_target_: own_format.Weights\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = ("format=weights", f"hydra.searchpath=[file://{tmp_path}/configs]", f"cache_dir={tmp_path}")
    config = composed("export", f"ckpt={GOLDEN}", f"out={tmp_path}/out.npz", *own)
    export(read_options(config, Export))
    assert (tmp_path / "out.npz").is_file()
    printed = capsys.readouterr().out
    assert "NumPy and PyTorch differ by at most" in printed
    assert printed.endswith("next: numpy.load\n")
    with pytest.raises(ConfigError, match="format=weights does not support precision=int8; remove it"):
        exported(tmp_path, *own, "precision=int8")


@pytest.mark.parametrize("value", ["7", "20000", "many", "true", "null", "100.5"])
def test_a_limit_of_the_source_that_no_bundle_has(tmp_path: Path, value: str) -> None:
    with pytest.raises(
        ConfigError, match=r"max_src_tokens is .*, expected a whole number of at least 8 and at most 16384"
    ):
        exported(tmp_path, f"max_src_tokens={value}")


def test_what_a_precision_takes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"max_bleu_loss is -1\.0 \(float\), expected a number of at least 0"):
        exported(tmp_path, "max_bleu_loss=-1.0")
    with pytest.raises(ConfigError, match=r"precision is 'int4'.*, expected one of 'float32', 'fp16', 'int8'"):
        exported(tmp_path, "precision=int4")
    with pytest.raises(ConfigError, match="format=ctranslate2 does not support precision=int8; remove it"):
        exported(tmp_path, "precision=int8", "format=ctranslate2")
    with pytest.raises(ConfigError, match="format=argos does not support shortlist=3"):
        exported(tmp_path, "shortlist=3", "format=argos")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"_target_": PARALLEL, "train": ["a", "b"], "val": ["c", "d"]}, "found plain .* 0 .* '' to ''"),
        ({"_target_": MULTI30K}, "found lc_tok text with 0 tags from 'en' to 'de'"),
        ({"_target_": MULTI30K, "variant": "raw"}, "CTranslate2 supports only Transformers"),
    ],
)
def test_argos_translate_needs_plain_text_of_known_languages(
    tmp_path: Path, data: dict[str, Any], problem: str
) -> None:
    checkpoint = load_checkpoint(GOLDEN)
    checkpoint[ORIGIN]["config"]["data"] = data
    save_unchecked(checkpoint, tmp_path / "no.ckpt")
    with pytest.raises(ConfigError, match=problem):
        exported(tmp_path, "format=argos")
    assert [path.name for path in tmp_path.iterdir()] == ["no.ckpt"]


@pytest.mark.parametrize("out", ["{}/file", "{}/file/b", "{}", "/dev/null/b", "5", "null"])
def test_a_place_where_no_bundle_can_be(tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises((BundleError, ConfigError), match=r"cannot be written|is not a bundle|expected a path"):
        exported(tmp_path, f"out={out.format(tmp_path)}")
    assert (tmp_path / "file").read_text() == "mine"


def test_the_defaults_are_those_of_the_config() -> None:
    part = OmegaConf.create()
    ours = Export(search=part, format=part, ckpt=Path("a"), out=Path("b"), cache_dir=Path("c"))
    config = composed("export", "ckpt=a", "out=b", "cache_dir=c")
    assert replace(read_options(config, Export), search=part, format=part) == ours


@pytest.mark.parametrize("search", ["greedy", "beam", "sample", "exact"])
def test_every_other_search_gets_as_far_as_the_checkpoint(tmp_path: Path, search: str) -> None:
    with pytest.raises(CheckpointError, match=r"no\.ckpt"):
        exported(tmp_path, f"search={search}")


@pytest.mark.parametrize(("options", "message"), UNEXPORTABLE)
def test_a_run_that_could_not_export_its_bundle_does_not_start(
    tmp_path: Path, options: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=f"callbacks.dashboard.bundle is true, but {message}"):
        train(
            composed(
                "train",
                "name=small",
                "callbacks.dashboard.bundle=true",
                f"run_dir={tmp_path / 'run'}",
                f"cache_dir={tmp_path / 'cache'}",
                *options,
            )
        )
    assert list(tmp_path.iterdir()) == []


def test_a_run_whose_bundle_has_no_room_does_not_start(tmp_path: Path) -> None:
    """Fault: a training that shall export its model to a place that cannot be written.

    Effect: an error before the training.
    """
    (tmp_path / "bundle").write_text("mine")
    with pytest.raises(ConfigError, match=r"callbacks.dashboard.bundle is true, but .*bundle"):
        train(configure_run(tmp_path.parent, tmp_path.name, "callbacks.dashboard.bundle=true"))
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


@pytest.mark.day
def test_a_decoder_of_the_user_is_exported_after_training_or_refused_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_decoders.py").write_text(OWN_DECODERS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    own = ("model=luong2015", "callbacks.dashboard.bundle=true", "model.decoder._target_=my_decoders")
    with pytest.raises(ConfigError, match=r"bundle is true, but this model cannot be exported \(.*; set callbacks"):
        train(configure_run(tmp_path, "refused", *own[:2], f"{own[2]}.Branching"))
    assert not (tmp_path / "refused" / "config.yaml").exists()
    train(configure_run(tmp_path, "exported", *own[:2], f"{own[2]}.Plain", "trainer.max_steps=2"))
    manifest = Bundle.open(tmp_path / "exported" / "bundle").manifest
    assert manifest.training["config"]["model"]["decoder"]["_target_"] == "my_decoders.Plain"
