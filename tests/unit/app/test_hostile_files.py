"""Nothing that a file says is run: hostile configs through every command that opens one."""

import json
import pickle
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from omegaconf import OmegaConf

from softsearch.app.config.allowed_classes import build_from_file
from softsearch.app.config.composition import CONFIGS
from softsearch.app.config.validation import build, plain
from softsearch.app.systems.open import open_any
from softsearch.app.systems.weights_file import read_tuned
from softsearch.app.train.resume import check_unchanged
from softsearch.data.corpora.base import ParallelSource
from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB, model_config
from softsearch.training.checkpoints.checkpoint_contents import ORIGIN, describe_mismatch
from softsearch.training.checkpoints.folder import average, load_resumable
from tests.support.bundles import make_bundle
from tests.support.written import Payload
from tests.unit.app.opening import Home, composed, make_home

CANARY = "CANARY"  # stands for a path that nothing may make
TOUCH = {"_target_": "pathlib.Path.touch", "self": {"_target_": "pathlib.Path", "_args_": [CANARY]}}
MKDIR = {"_target_": "os.mkdir", "path": CANARY}
RUN = {
    "_target_": "lightning.pytorch.cli.instantiate_class",
    "args": ["/bin/sh", "-c", f"touch {CANARY}"],
    "init": {"class_path": "subprocess.run"},  # as Popen, and waits
}
PICKLE = {
    "_target_": "lightning.pytorch.LightningModule.load_from_checkpoint",
    "checkpoint_path": "data:application/octet-stream;base64,BASE64",
    "weights_only": False,
}
YAML = {"_target_": "lightning.pytorch.core.saving.save_hparams_to_yaml", "config_yaml": CANARY, "hparams": {"a": 1}}
MODEL, ENCODER = "softsearch.models.Seq2Seq", "softsearch.models.RecurrentEncoder"
PARALLEL = "softsearch.data.Parallel"
FILTERS = {"_target_": "softsearch.text.Filters"}

# What a config says, by a name for the test, as changes of the good config: {dotted key: value}.
REFUSED: dict[str, dict[str, Any]] = {
    "model instantiate_class": {"model": RUN},
    "model load_from_checkpoint": {"model": PICKLE},
    "model save_hparams_to_yaml": {"model": YAML},
    "model os.mkdir": {"model": MKDIR},
    "model Path.touch": {"model": TOUCH},
    "model os.system": {"model": {"_target_": "os.system", "command": f"touch {CANARY}"}},
    "model eval": {"model": {"_target_": "builtins.eval", "_args_": [f"open('{CANARY}', 'w')"]}},
    "model torch.load": {"model": {"_target_": "torch.load", "f": "PICKLED", "weights_only": False}},
    "model torch.hub": {"model": {"_target_": "torch.hub.load", "repo_or_dir": ".", "model": "x", "source": "local"}},
    "model pickle": {"model": {"_target_": "pickle.loads", "_args_": [CANARY]}},
    "model hydra": {"model": {"_target_": "hydra.utils.call", "config": MKDIR}},
    "model our function": {"model": {"_target_": "softsearch.app.config.validation.build", "node": MKDIR}},
    "model through our module": {"model": {"_target_": "softsearch.data.preparation.prepare.os.mkdir", "path": CANARY}},
    "model our method": {"model": {"_target_": "softsearch.models.Seq2Seq.encode", "src_tokens": 1}},
    "model own module": {"model": {"_target_": "hostile_on_import.Model"}},
    "model a data source": {"model": {"_target_": PARALLEL, "train": ["a.en", "a.de"], "val": ["a.en", "a.de"]}},
    "model partial": {"model._partial_": True, "model._target_": "os.mkdir", "model.path": CANARY},
    "model positional": {"model._args_": [RUN]},
    "model recursive": {"model._recursive_": False},
    "model convert": {"model._convert_": "object"},
    "model partial text": {"model._partial_": "${canary:}"},
    "model target list": {"model._target_": ["os.mkdir", CANARY]},
    "model target mapping": {"model._target_": MKDIR},
    "model target interpolation": {"model._target_": "${canary:}"},
    "model interpolated number": {"model.encoder.hidden_dim": "${canary:}"},
    "model environment": {"model.embeddings.tie": "${oc.env:HOME}"},
    "encoder instantiate_class": {"model.encoder": RUN},
    "encoder partial": {"model.encoder": {**MKDIR, "_partial_": True}},
    "encoder embeds": {"model.encoder.embedding": RUN},
    "decoder embeds": {"model.decoder.embeddings": {**MKDIR, "_partial_": True}},
    "decoder unknown key": {"model.decoder.extra": YAML},
    "decoder deep": {"model.decoder.dropout": [[[{"a": {"b": RUN}}]]]},
    "embeddings load": {"model.embeddings": {**PICKLE, "_partial_": True}},
    "data instantiate_class": {"data": RUN},
    "data load_from_checkpoint": {"data": PICKLE},
    "data save_hparams_to_yaml": {"data": YAML},
    "data os.mkdir": {"data": MKDIR},
    "data a model": {"data": {"_target_": MODEL}},
    "data a logger": {"data": {"_target_": "softsearch.training.MetricsFile", "path": CANARY}},
    "data a command": {"data": {"_target_": "softsearch.app.train.train.train", "config": {}}},
    "data writes": {"data": {"_target_": "softsearch.data.corpora.base.complete_folder", "folder": CANARY}},
    "data filters": {"data.filters": RUN},
    "data filters partial": {"data.filters": {**FILTERS, "_partial_": True, "on_error": MKDIR}},
    "data in a list": {"data.train": [RUN, MKDIR]},
    "data in lists": {"data.train": [["a.en", "a.de"], ["b.en", TOUCH]]},
    "data only filters": {"data": FILTERS},
    "data pairs": {
        "data": {"_target_": "softsearch.data.Multilingual", "src_lang": "en", "tgt_lang": "de", "pairs": {"de": MKDIR}}
    },
    "data babel": {"data": {"_target_": "softsearch.data.Spellout", "src_lang": f"../{CANARY}", "tgt_lang": "de"}},
    "data positional": {"data._args_": [MKDIR]},
    "data interpolated target": {"data._target_": "${oc.decode:os.mkdir}"},
}
# What no command that opens a file builds.
IGNORED: dict[str, Any] = {
    "model.init": RUN,
    "tokenizer": {**RUN, "kind": "${canary:}"},
    "batching": MKDIR,
    "loss": YAML,
    "optimizer": {**TOUCH, "_partial_": True},
    "scheduler": PICKLE,
    "method": RUN,
    "search": RUN,
    "trainer": RUN,
    "callbacks": {"a": MKDIR},
    "logger": {"a": TOUCH},
    "vectors": {"src": "${canary:}", "tgt": "${canary:}"},
    "run_dir": "${canary:}",
    "cache_dir": CANARY,
    "name": "${canary:}",
    "data.src_lang": "${canary:}",
    "extra": RUN,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A path that must not exist at the end; a module, a pickle and a resolver that make it."""
    path, modules = tmp_path / "canary", tmp_path / "modules"
    modules.mkdir()
    (modules / "hostile_on_import.py").write_text(
        f"import pathlib\npathlib.Path({str(path)!r}).touch()\nModel = dict\n"
    )
    (tmp_path / "pickled").write_bytes(pickle.dumps(Payload(path)))
    monkeypatch.syspath_prepend(modules)
    OmegaConf.register_new_resolver("canary", path.touch, replace=True)
    yield path
    OmegaConf.clear_resolver("canary")
    assert not path.exists()
    assert "hostile_on_import" not in sys.modules


def hostile(value: Any, canary: Path) -> Any:
    """A value with real paths in it."""
    pickled = canary.with_name("pickled")
    places = {CANARY: str(canary), "PICKLED": str(pickled), "BASE64": b64encode(pickled.read_bytes()).decode()}
    text = json.dumps(value)
    for name, place in places.items():
        text = text.replace(name, place)
    return json.loads(text)


def change(config: dict[str, Any], changes: dict[str, Any], canary: Path) -> None:
    for key, value in changes.items():
        *parents, last = key.split(".")
        node = config
        for parent in parents:
            node = node[parent]
        node[last] = hostile(value, canary)


EVERYWHERE = ("model instantiate_class", "data os.mkdir")  # for every command; the others where all read a file


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_config_is_refused_and_nothing_runs(name: str, home: Home, canary: Path) -> None:
    """Fault: a checkpoint, bundle or `weights.json` that names a function or a class that is not a part of a model.

    Effect: refused before anything is imported or built.
    """
    home.save(lambda checkpoint: change(checkpoint[ORIGIN]["config"], REFUSED[name], canary))
    before = {path for path in home.folder.rglob("*") if path.is_file()}
    for command in home.commands if name in EVERYWHERE else ["evaluate"]:
        with pytest.raises(CheckpointError, match=r"step-1\.ckpt: (model|data).* of its config ") as refused:
            home.commands[command]()
        assert len(str(refused.value)) < 1000, command
        assert not canary.exists(), command
    # What builds nothing of the config passes it on, or names what differs.
    checkpoint = load_resumable(home.other)
    check_unchanged(home.other, {}, lambda found: describe_mismatch(found["state_dict"], checkpoint["state_dict"]))
    average([home.other])
    assert {path for path in home.folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", [name for name in REFUSED if not name.startswith("data")])
def test_init_takes_over_no_hostile_model(name: str, home: Home, canary: Path) -> None:
    home.save(lambda checkpoint: change(checkpoint[ORIGIN]["config"], REFUSED[name], canary))
    with pytest.raises(CheckpointError, match=r"step-1\.ckpt: model.* of its config "):
        composed("train", f"init={home.other}")


@pytest.mark.parametrize("key", ["model.embeddings.init", "name"])
@pytest.mark.parametrize("value", ["${canary:}", "a ${oc.env:HOME} b", "\\${oc.env:HOME}"])
def test_init_takes_over_no_interpolation(key: str, value: str, home: Home, canary: Path) -> None:
    home.save(lambda checkpoint: change(checkpoint[ORIGIN]["config"], {key: value}, canary))
    with pytest.raises(CheckpointError, match="an interpolation, which is not allowed in a file"):
        composed("train", f"init={home.other}")


@pytest.mark.parametrize(
    "command",
    ["evaluate", "average", "rerank", "score", "tune", "dictionary", pytest.param("export", marks=pytest.mark.day)],
)
def test_what_no_command_needs_is_plain_text(command: str, home: Home, canary: Path) -> None:
    home.save(lambda checkpoint: change(checkpoint[ORIGIN]["config"], IGNORED, canary))
    home.commands[command]()


def test_every_hostile_node_is_refused_where_it_is_built(tmp_path: Path, home: Home, canary: Path) -> None:
    """Without the commands: there are enough of them, and the good config is built."""
    assert len(REFUSED) >= 30
    config = home.checkpoint[ORIGIN]["config"]
    sizes = {"src_vocab_size": 16, "tgt_vocab_size": 16}
    assert isinstance(build_from_file(tmp_path, "model", config["model"], Seq2Seq, **sizes), Seq2Seq)
    assert build_from_file(tmp_path, "data", config["data"], ParallelSource).text_form == "plain"


def test_a_source_reads_nothing_until_it_is_asked_to(tmp_path: Path) -> None:
    opened: list[str] = []
    watching = False

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event in ("open", "os.listdir", "os.scandir", "os.mkdir", "socket.connect"):
            opened.append(str(arguments[0]))

    sys.addaudithook(watch)
    gone = str(tmp_path / "gone")
    multi30k = {"_target_": "softsearch.data.Multi30k", "root": gone}
    nodes: list[dict[str, Any]] = [
        multi30k,
        {**multi30k, "root": None, "mirror": "https://localhost:1/"},
        {"_target_": PARALLEL, "train": [f"{gone}.en", f"{gone}.de"], "val": [f"{gone}.en", f"{gone}.de"]},
        {"_target_": "softsearch.data.Spellout"},
        {"_target_": "softsearch.data.Multilingual", "src_lang": "en", "tgt_lang": "de", "pairs": {"de": multi30k}},
    ]
    for again in range(2):  # the first time Babel reads its own names of days
        watching = bool(again)
        for node in nodes:
            build_from_file(tmp_path, "data", node, ParallelSource)
    watching = False
    assert opened == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", ["model", "data"])
def test_every_class_of_our_yaml_may_be_named_by_a_file(part: Literal["model", "data"], tmp_path: Path) -> None:
    kinds: dict[str, type] = {"model": Seq2Seq, "data": ParallelSource}
    found = set()
    for path in CONFIGS.rglob("*.yaml"):
        content: Any = OmegaConf.to_container(OmegaConf.load(path))
        found |= set(targets(content if path.parent.name == part else content.get(part)))
    assert len(found) > 5
    for name in sorted(found):
        with pytest.raises(CheckpointError, match=r"cannot be built \(ConfigError: "):  # it is allowed and bound
            build_from_file(tmp_path, part, {"_target_": name, "nonsense": 1}, kinds[part])


def targets(node: Any) -> Iterator[str]:
    """What a node names, without how a model starts, which no file needs."""
    if isinstance(node, dict):
        yield from [node["_target_"]] if "_target_" in node else []
        node = [value for key, value in node.items() if key != "init"]
    if isinstance(node, list):
        for value in node:
            yield from targets(value)


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONFIGS / "model").glob("*.yaml")))
def test_every_model_is_rebuilt_from_its_plain_config(name: str, tmp_path: Path) -> None:
    config = model_config(name)
    sizes = {"src_vocab_size": SRC_VOCAB, "tgt_vocab_size": TGT_VOCAB}
    ours, theirs = build_from_file(tmp_path, "model", plain(config), Seq2Seq, **sizes), build(config, **sizes)
    assert {k: w.shape for k, w in ours.state_dict().items()} == {k: w.shape for k, w in theirs.state_dict().items()}


def test_what_a_bundle_says_of_its_training_is_text(tmp_path: Path, canary: Path) -> None:
    config = hostile({"data": {**RUN, "src_lang": "${canary:}", "variant": MKDIR}, "model": RUN}, canary)
    for index, facts in enumerate(
        [{"config": config, "parameters": "x"}, {"config": [config]}, {"config": {"data": 3}}]
    ):
        make_bundle(tmp_path / f"b{index}", training=facts)
        (system,) = open_any([str(tmp_path / f"b{index}")])
        assert (system.source, system.parameters, system.text_form) == (None, 0, "plain")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("ckpt", ["${canary:}"], "a value with"),
        ("language_model", "${oc.env:HOME}", "a value with"),
        ("ckpt", [MKDIR], "ckpt is .*expected only tuned options"),
        ("language_model", TOUCH, "language_model is .*, expected only tuned options"),
        ("weights", ["${canary:}"], "a value with"),
        ("weights", "other.json", "weights is other.json, expected only tuned options"),
        ("ensemble", RUN, "ensemble is .*, expected only tuned options"),
        ("_args_", [RUN], "expected only tuned options"),
        ("_target_", "os.system", "expected only tuned options"),
        ("search", RUN, "expected only tuned options"),
        ("search._target_", "os.system", "expected only tuned options"),
        ("search.models", [RUN], "search.models is .*, expected only tuned options"),
        ("search.models", [[RUN]], "search.models is .*, expected only tuned options"),
        ("search.models", ["${canary:}"], "a value with"),
        ("search.search._partial_", True, "expected only tuned options"),
        ("data.root", "/", "data.root is /, expected only tuned options"),
    ],
)
def test_weights_json_holds_nothing_but_what_is_tuned(
    key: str, value: Any, message: str, home: Home, tmp_path: Path, canary: Path
) -> None:
    content = json.loads((home.folder / "weights.json").read_text())
    content["options"][key] = hostile(value, canary)
    (tmp_path / "weights.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=message):
        read_tuned(tmp_path / "weights.json")
