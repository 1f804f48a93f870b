"""Every model of configs/model, from token ids to logits, against a transcription of its paper in plain NumPy."""

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from softsearch.models.interface import CountedDecoder
from softsearch.models.layers import Dropout
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB, model_config, random_model
from softsearch.text.vocabulary import BOS, EOS, PAD, SPECIALS
from tests.support.models import (
    BESIDE,
    CONFIGS,
    DIRECT,
    ELMAN,
    GRU,
    INPUT_FORGET,
    LOCATION,
    LSTM,
    RANK,
    dropping,
    varied,
)
from tests.support.transcriptions.equations import fixed_mask
from tests.support.transcriptions.whole import logits

SRC_LENGTHS, TGT_LENGTHS = (5, 1, 12, 2), (6, 2, 4, 1)
FACTORED, HIERARCHICAL = "loss=class_factored", "loss=hierarchical_softmax"
UNEQUAL = ["embeddings.tie=none", "embeddings.dim=6"]  # so that no width can be taken for another
TRANSFORMER = "softsearch.models.TransformerEncoder"
ENCODER = ["+encoder.num_layers=1", "+encoder.d_ff=6", "+encoder.num_heads=2", "+encoder.pre_norm=true"]
SCORE, WINDOW = "decoder.attention.score", "decoder.attention.window"
HYBRID = LOCATION.replace("Location", "Hybrid")
NORMED_PARTS = [f"+decoder.{part}.layer_norm=true" for part in ("attention", "initial_state", "readout")]
DECODER = ["decoder.hidden_dim=10", "decoder.attention.dim=5"]
VARIANTS: dict[str, list[list[str]]] = {  # besides what the yaml says; sizes as tests.support.models has them
    "rnn": [["bidirectional=false"], [*UNEQUAL, "num_layers=3"]],
    "lstm": [["bidirectional=false"], [*UNEQUAL, "num_layers=3"]],
    "gru": [["bidirectional=false"], ["+cell.reset=after"], [*UNEQUAL, "num_layers=3"]],
    "input_forget": [["bidirectional=false"], [*UNEQUAL, "num_layers=3"]],
    "sutskever2014": [UNEQUAL],
    "rnnlm": [[HIERARCHICAL, *UNEQUAL], [f"decoder.cell._target_={GRU}"], [f"decoder.cell._target_={ELMAN}", *UNEQUAL]],
    "feed_forward_lm": [["decoder.order=3", *UNEQUAL, "decoder.hidden_dim=10"], [*DIRECT, "embeddings.dim=6"]],
    "log_bilinear_lm": [["decoder.order=3", *UNEQUAL]],
    "ngram": [["decoder.order=3"], ["decoder.order=4"]],
    "rnnencdec": [
        RANK,
        [*UNEQUAL, "decoder.hidden_dim=10", "decoder.maxout_dim=7"],
        [f"encoder.cell._target_={LSTM}"],
        [f"encoder.cell._target_={ELMAN}"],
        ["encoder.bidirectional=true"],
        ["decoder.summary=cell"],
        ["decoder.summary=start"],
        [f"encoder.cell._target_={LSTM}", "encoder.bidirectional=true", "+encoder.num_layers=2"],
        [f"decoder.cell._target_={LSTM}", "~decoder.cell.reset"],
        [f"decoder.cell._target_={ELMAN}", "~decoder.cell.reset"],
        ["+decoder.cell.layer_norm=true", "+decoder.cell.transition_depth=2", "+decoder.cell.recurrent_dropout=0.3"],
    ],
    "rnnsearch": [
        [*UNEQUAL, *DECODER, "decoder.readout.dim=7"],
        ["+encoder.cell.reset=after"],
        ["+decoder.cell.reset=after"],
        [f"encoder.cell._target_={LSTM}"],
        [f"encoder.cell._target_={LSTM}", "encoder.bidirectional=false"],
        [f"encoder.cell._target_={ELMAN}"],
        [f"decoder.cell._target_={LSTM}"],
        [f"decoder.cell._target_={ELMAN}"],
        [FACTORED],
        [FACTORED, *UNEQUAL, "embeddings.output_layer.num_classes=7"],
        [f"encoder.cell._target_={INPUT_FORGET}", f"decoder.cell._target_={INPUT_FORGET}"],
    ],
    "sennrich_lecture": [
        [*UNEQUAL, *DECODER, "decoder.readout.dim=7"],
        [f"encoder.cell._target_={GRU}", f"decoder.cell._target_={GRU}", "+decoder.cell.reset=after"],
        [f"encoder.cell._target_={LSTM}", f"decoder.cell._target_={LSTM}", "encoder.bidirectional=false"],
        [f"decoder.cell._target_={LSTM}", f"decoder.attention._target_={LOCATION}", "+decoder.attention.half_width=3"],
    ],
    "chorowski2015": [
        [*UNEQUAL, *DECODER, "decoder.readout.dim=7", "decoder.attention.filters=4", "decoder.attention.half_width=1"],
        [f"decoder.attention._target_={LOCATION}"],
        [
            f"decoder.attention._target_={LOCATION}",
            f"decoder.cell._target_={LSTM}",
            "~decoder.cell.reset",
            f"encoder.cell._target_={LSTM}",
            "~encoder.cell.reset",
        ],
    ],
    "nematus": [
        [f"decoder.attention._target_={HYBRID}", "+decoder.attention.half_width=2"],
        ["+encoder.cell.layer_norm=true", "+decoder.cell.layer_norm=true", *NORMED_PARTS],
        ["decoder.cell.reset=before", "+decoder.cell.transition_depth=2", "+decoder.cell.recurrent_dropout=0.3"],
        [*UNEQUAL, *DECODER, "decoder.readout.dim=7"],
        ["encoder.cell.reset=before", "decoder.cell.reset=before"],
        [f"encoder.cell._target_={LSTM}", "~encoder.cell.reset", "encoder.bidirectional=false"],
    ],
    "nematus_deep": [
        [f"{part}.recurrent_dropout=0.3" for part in ("encoder.cell", "decoder.cell", "decoder.context_cell")]
    ],
    "pointer_generator": [
        [*UNEQUAL, *DECODER, "decoder.readout.dim=7"],
        [f"encoder.cell._target_={LSTM}", "~encoder.cell.reset", "decoder.cell.reset=before"],
    ],
    "luong2015": [
        [*UNEQUAL, "decoder.attention.window=local-p"],
        [f"encoder.cell._target_={GRU}", f"decoder.cell._target_={GRU}"],
        [f"encoder.cell._target_={INPUT_FORGET}", f"decoder.cell._target_={INPUT_FORGET}"],
        ["encoder.hidden_dim=4", "encoder.bidirectional=true", "+decoder.cell.recurrent_dropout=0.3"],
        ["decoder.attention.score=location"],
        ["decoder.attention.score=location", "decoder.input_feeding=false"],
        *(
            [f"{SCORE}={score}", f"{WINDOW}={window}", f"decoder.input_feeding={feeding}"]
            for score in ("dot", "general", "concat")
            for window in ("global", "local-m", "local-p")
            for feeding in ("true", "false")
        ),
    ],
    "kalchbrenner2013": [[*UNEQUAL, "decoder.hidden_dim=10", "encoder.max_src_len=12"], [FACTORED]],
    "multi_source": [
        [*UNEQUAL, "decoder.attention.score=concat"],
        ["encoder.num_sources=3", "decoder.attention.window=global"],
        [f"{SCORE}=dot", "decoder.attention.window=local-m", "decoder.input_feeding=false"],
        ["encoder.encoder.hidden_dim=4", "encoder.encoder.bidirectional=true"],
        ["decoder.attention.score=location", "decoder.attention.window=global"],
        [f"encoder.encoder.cell._target_={GRU}", f"decoder.cell._target_={GRU}"],
        BESIDE,
        [*BESIDE, *UNEQUAL, "encoder.num_sources=3", "encoder.feature_dim=7"],
    ],
    "kalchbrenner2013_rctm2": [
        [*UNEQUAL, "decoder.hidden_dim=10", "encoder.max_src_len=12"],
        ["decoder.length_ratio=2.3"],
        ["decoder.length_ratio=0.7"],
    ],
    "lee2017": [
        ["embeddings.dim=6", *DECODER, "decoder.readout.dim=7", "encoder.stride=3", "encoder.highway_layers=1"],
        ["encoder.reset=before", "encoder.stride=1", "encoder.filters=[5]"],
        ["encoder.stride=20", "encoder.filters=[2,2,2,2,2,2,2,2]"],
    ],
    "chung2016": [
        ["embeddings.dim=6", *DECODER, "decoder.readout.dim=7"],
        [f"encoder.cell._target_={LSTM}", "~encoder.cell.reset"],
    ],
    "gao2020": [["encoder.convolution_widths=[3,9]"], ["encoder.pre_norm=false", "encoder.num_layers=3"]],
    "show_attend_tell": [[*UNEQUAL, *DECODER, "encoder.feature_dim=7"]],
    "transformer_tiny": [
        ["encoder.pre_norm=false", "decoder.pre_norm=false"],
        ["encoder.pre_norm=true", "decoder.pre_norm=false"],
        [FACTORED],
        [HIERARCHICAL],
        ["embeddings.tie=none", "encoder.num_heads=4", "encoder.num_layers=3", "decoder.d_ff=10"],
        ["encoder.activation=gelu", "decoder.activation=swish", "decoder.positions=rotary"],
        ["encoder.positions=rotary", "decoder.positions=learned", "+decoder.max_positions=9"],
        ["encoder.positions=sinusoidal_halves", "decoder.positions=sinusoidal_tensor2tensor"],
        ["+encoder.scale_embeddings=false", "+decoder.scale_embeddings=false"],
    ],
    "transformer_base": [["encoder.pre_norm=true", "decoder.pre_norm=true"]],
    "transformer_ssru": [["encoder.pre_norm=false", "decoder.pre_norm=false"]],
    "decoder_only": [
        ["decoder.pre_norm=false"],
        ["decoder.activation=swish", "decoder.positions=rotary"],
        ["decoder.positions=learned", "+decoder.max_positions=24", "+decoder.scale_embeddings=false"],
        ["decoder.num_heads=4", "decoder.num_layers=3", "decoder.d_ff=10"],
        [f"encoder._target_={TRANSFORMER}", *ENCODER],
    ],
    "decoder_only_rnn": [
        [f"decoder.cell._target_={GRU}", "decoder.num_layers=1"],
        [f"decoder.cell._target_={GRU}", "+decoder.cell.reset=after"],
        [f"decoder.cell._target_={ELMAN}", "decoder.num_layers=3"],
        ["+decoder.cell.layer_norm=true", "+decoder.cell.transition_depth=2"],
        [
            "encoder._target_=softsearch.models.RecurrentEncoder",
            f"+encoder.cell={{_target_: {LSTM}, _partial_: true}}",
            "+encoder.hidden_dim=4",
        ],
    ],
    "transformer_rnn": [["embeddings.tie=none", *DECODER, "decoder.readout.dim=7"]],
}
NORMS, DEEP, DROPS = "+cell.layer_norm=true", "+cell.transition_depth=4", "+cell.recurrent_dropout=0.3"
for _name in ("rnn", "lstm", "gru", "input_forget"):
    VARIANTS[_name] += [[NORMS], [DEEP], [NORMS, DEEP, *UNEQUAL], [DROPS], [DROPS, NORMS, DEEP]]
VARIANTS["gru"] += [[NORMS, DEEP, "+cell.reset=after"], [DEEP, "+cell.reset=after"], [DROPS, DEEP, "+cell.reset=after"]]
NAMES = sorted(path.stem for path in (CONFIGS / "model").glob("*.yaml"))

every_variant = pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(name, options, id="-".join([name, *options]))
        for name in NAMES
        for options in [[], *VARIANTS.get(name, [])]
    ],
)


@every_variant
def test_logits_equal_the_paper(name: str, options: list[str]) -> None:
    config = config_of(name, options)
    check(dropping(config, 0.0), random_model(config))


@every_variant
def test_dropout_is_where_the_paper_has_it(name: str, options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same factors for both in place of random masks, which no other place in the equations hides."""
    config = dropping(config_of(name, options), 0.3)
    monkeypatch.setattr(
        Dropout, "forward", lambda self, x: x * torch.tensor(fixed_mask(x.shape[-1])) if self.rate else x
    )
    check(config, random_model(config).train())


def config_of(name: str, options: list[str]) -> DictConfig:
    choices = [option for option in options if option in (FACTORED, HIERARCHICAL)]
    return varied(model_config(name, *choices), [option for option in options if option not in choices])


def check(config: DictConfig, model: Seq2Seq) -> None:
    """Compares logits of padded sentences; ``config`` is what the transcription reads."""
    src, tgt = padded(SRC_LENGTHS, SRC_VOCAB), padded(TGT_LENGTHS, TGT_VOCAB)
    for row, (src_len, tgt_len) in enumerate(zip(SRC_LENGTHS, TGT_LENGTHS, strict=True)):
        src[row, src_len - 1] = EOS
        tgt[row, 0] = BOS
        assert (src[row] != PAD).sum() == src_len
        assert (tgt[row] != PAD).sum() == tgt_len
    with torch.no_grad():
        together = model(src, tgt).numpy()
    weights = {key: value.numpy() for key, value in model.state_dict().items()}
    has_positions = any("num_heads" in side for side in (config.get("encoder", ()), config.get("decoder", ())))
    # A Transformer's positions are in single precision, and the tables of what is counted.
    tolerance = 1e-6 if has_positions or isinstance(model.decoder, CountedDecoder) else 1e-9
    needed: set[str] = set()
    for row, (src_len, tgt_len) in enumerate(zip(SRC_LENGTHS, TGT_LENGTHS, strict=True)):
        expected, names = logits(config, weights, src[row, :src_len].tolist(), tgt[row, :tgt_len].tolist())
        np.testing.assert_allclose(together[row, :tgt_len], expected, rtol=0, atol=tolerance)
        needed |= names
    assert needed == set(weights)  # the model has no parameter that its paper does not have


def test_the_lecture_has_embeddings_of_its_own_for_both_languages() -> None:
    model = random_model(model_config("sennrich_lecture"))
    matrices = {id(weight) for weight in model.parameters() if SRC_VOCAB in weight.shape and weight.dim() > 1}
    assert len(matrices) == 3  # E_x, E_y, V_o


def padded(lengths: tuple[int, ...], vocab_size: int) -> torch.Tensor:
    """Random tokens ``[len(lengths), longest]``."""
    draw = torch.Generator().manual_seed(vocab_size + len(lengths))
    tokens = torch.randint(len(SPECIALS), vocab_size, (len(lengths), max(lengths)), generator=draw)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.where(real, tokens, PAD)
