"""Models fit the vocabularies that they are built for, and pretrained embeddings find their way into them."""

import logging
from pathlib import Path

import pytest
import torch

from softsearch.app.config.allowed_classes import name_of
from softsearch.app.config.build import build_data, build_model, check_attention, load_vectors, rebuild_source
from softsearch.app.config.composition import composed
from softsearch.app.config.options import Vectors
from softsearch.data.corpora.base import DIVISION
from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.parallel import Parallel
from softsearch.errors import ConfigError, CorpusError
from softsearch.models.output_layers import ClassFactored
from softsearch.models.seq2seq import Seq2Seq
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.testing.models import SMALL, SRC_VOCAB, model_config, small_model
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents
from tests.support.models import CONFIGS

TOKENIZERS = tuple(
    train_tokenizer([" ".join(words)], kind="word", vocab_size=SRC_VOCAB)
    for words in (("cat", "dog", "house"), ("Katze", "Hund", "Haus"))
)


def pair() -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    return TOKENIZERS[0], TOKENIZERS[1]


def write(folder: Path, token: str, value: int) -> str:
    path = folder / f"{token}.vec"
    path.write_text(f"1 {SMALL['dim']}\n{token}{f' {value}' * int(SMALL['dim'])}\n")
    return str(path)


def load(model: Seq2Seq, src: str | None, tgt: str | None) -> None:
    load_vectors(Vectors(src=src and Path(src), tgt=tgt and Path(tgt)), model, pair())


def changed(before: torch.Tensor, after: torch.Tensor) -> list[int]:
    return (before != after).any(dim=1).nonzero()[:, 0].tolist()


def test_two_vocabularies_of_one_size_do_not_share_a_matrix() -> None:
    src, tgt = pair()
    assert src.vocab_size == tgt.vocab_size
    wrong = r"row 4 of the matrix would be '▁\w+' in one and '▁\w+' in the other; set tokenizer.joint=true or model.emb"
    with pytest.raises(ConfigError, match=wrong):
        build_model(model_config("rnnsearch"), (src, tgt))
    for tie in ("output", "none"):
        build_model(model_config("rnnsearch", f"model.embeddings.tie={tie}"), (src, tgt))


@pytest.mark.parametrize(("train", "key"), [("[x.src.txt,x.de]", "src_lang"), ("[x.en,x]", "tgt_lang")])
def test_data_of_a_language_that_nothing_names(train: str, key: str) -> None:
    """Fault: files without a language in their names. Effect: an error."""
    config = composed("train", "data=parallel", f"data.train={train}", "data.val=[y,z]", "run_dir=x", "name=x")
    with pytest.raises(ConfigError, match=f"data.{key} is empty, and the name .*; set data.{key}=CODE"):
        build_data(config)


def test_one_vocabulary_is_shared_whichever_way_its_ids_run() -> None:
    (src, _), backwards = pair(), SentencePieceTokenizer(pair()[0].model, reverse=True)
    for tokenizers in ((src, src), (src, backwards), (backwards, src)):
        model = build_model(model_config("rnnsearch"), tokenizers)
        assert model.encoder.embedding is model.decoder.embedding


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONFIGS / "model").glob("*.yaml")))
def test_every_model_takes_an_output_factored_by_classes(name: str) -> None:
    if name == "ngram":
        with pytest.raises(
            ConfigError, match=r"output_layer is set, but NGramDecoder has counts .* loss=cross_entropy"
        ):
            small_model(name, "loss=class_factored")
        return
    modules = small_model(name, "loss=class_factored").decoder.output_projection.modules()
    assert any(isinstance(module, ClassFactored) for module in modules)


def test_a_coverage_penalty_without_attention_is_refused() -> None:
    for search in (BeamSearch(), Greedy()):
        check_attention(search, small_model("gru"))
    check_attention(BeamSearch(coverage_penalty=0.2), small_model("rnnsearch"))
    with pytest.raises(ConfigError, match=r"search.coverage_penalty is 0.2, but the model has no attention"):
        check_attention(BeamSearch(coverage_penalty=0.2), small_model("gru"))


@pytest.mark.day
def test_no_experiment_ties_two_vocabularies() -> None:
    names = [path.stem for path in (CONFIGS / "experiment").glob("*.yaml")]
    configs = [composed("train", f"experiment={name}") for name in names]
    separate = [config.model for config in configs if not config.tokenizer.joint]
    assert len(separate) >= 5
    assert "all" not in [model.embeddings.tie for model in separate]


@pytest.mark.parametrize("sides", [("src",), ("tgt",), ("src", "tgt")])
def test_each_side_gets_its_vectors(tmp_path: Path, sides: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    model = small_model("transformer_tiny", "model.embeddings.tie=output").float()
    words = {"src": "dog", "tgt": "Haus"}
    files = {side: write(tmp_path, words[side], 5) if side in sides else None for side in words}
    before = {name: value.clone() for name, value in model.state_dict().items()}
    load(model, files["src"], files["tgt"])
    matrices = {"src": "encoder.embedding.weight", "tgt": "decoder.embedding.weight"}
    for side, tokenizer in zip(matrices, pair(), strict=True):
        row = tokenizer.encode(words[side])[0]
        after = model.state_dict()[matrices[side]]
        assert changed(before[matrices[side]], after) == ([row] if side in sides else [])
        assert not files[side] or after[row].tolist() == [5.0] * int(SMALL["dim"])
    assert torch.equal(model.decoder.output_projection.weight, model.state_dict()[matrices["tgt"]])
    assert caplog.text.count("1 of 3 pieces found among 1 (0 exactly, 1 without the space mark)") == len(sides)


def test_one_matrix_takes_one_file(tmp_path: Path) -> None:
    model = small_model("transformer_tiny", "model.embeddings.tie=all").float()
    with pytest.raises(ConfigError, match=r"tie=all has one matrix for both"):
        load(model, write(tmp_path, "dog", 5), write(tmp_path, "Haus", 5))
    load(model, None, write(tmp_path, "Haus", 5))


def test_a_model_without_a_source_has_no_source_vectors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"vectors.src is set, but the model has no such embeddings"):
        load(small_model("rnnlm").float(), write(tmp_path, "dog", 5), None)


@pytest.mark.parametrize(
    ("val", "division", "is_refused"), [(5, None, True), (5, DIVISION, False), (["c.en", "c.de"], 1, False)]
)
def test_text_divided_by_an_older_rule_is_not_tested_on(
    val: object, division: int | None, is_refused: bool, tmp_path: Path
) -> None:
    part = {"_target_": name_of(Parallel), "train": ["a.en", "a.de"], "val": val}
    for data in (part, {"_target_": name_of(Multilingual), "pairs": {"de": part}}):
        tokenizer = SentencePieceTokenizer(train_tokenizer(["a b"], kind="char", vocab_size=10).model)
        contents = CheckpointContents(
            Path("old.ckpt"), {"data": data}, (tokenizer, tokenizer), {}, 0, 1, None, division
        )
        source = rebuild_source(contents)
        assert (source.src_lang, source.tgt_lang) == ("en", "de")
        with pytest.raises(CorpusError, match="an older softsearch wrote old" if is_refused else "which was not read"):
            source.files(tmp_path)
