"""Other toolkits' words are answered with ours at every surface, and no suggestion is far from what was typed."""

import inspect
from collections.abc import Iterable, Mapping

import pytest

from softsearch import Translator
from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import CONFIGS
from softsearch.app.config.resolvers import register_resolvers
from softsearch.commands import every_command
from softsearch.extras.serve.schema import LibreRequest, TranslateRequest
from softsearch.runtime.cli import parser_of
from softsearch.runtime.options import KINDS, option_names
from softsearch.runtime.providers import PROVIDERS
from softsearch.search.ensemble import AVERAGES
from softsearch.suggestions import CHOICES, COMMANDS, OPTIONS, did_you_mean
from softsearch.text.languages import nearest_language

register_resolvers()
COMMAND_NAMES = {command.name for command in every_command()}
SURFACES = {
    "train model=transformer_base": CommandLine("train", ["model=transformer_base"])._keys(),
    **{name: CommandLine(name)._keys() for name in ("train", "prepare", "evaluate", "export", "score")},
    **{
        f"{command.name} --": parser_of(command).option_names()
        for command in every_command()
        if command.takes == "flags" and command.name in ("translate", "serve", "import")
    },
    "POST": [*TranslateRequest.model_fields],
    "LibreTranslate": [*LibreRequest.model_fields],
    "Translator()": [*inspect.signature(Translator.__init__).parameters],
    "translate()": [*inspect.signature(Translator.translate).parameters, *set().union(*map(option_names, KINDS))],
    "softsearch": COMMAND_NAMES,
    "choices": [
        *(path.stem for path in CONFIGS.glob("*/*.yaml")), *KINDS, *PROVIDERS, *AVERAGES, "int8", "fp16", "float32"
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("surface", "word", "suggested"),
    [
        ("train", "learning_rate", "did you mean 'optimizer.lr'?"),
        ("train", "learning_rat", "did you mean 'optimizer.lr'?"),
        ("train", "optimizer.learningrate", "did you mean 'optimizer.lr'?"),
        ("train", "warmup_step", "did you mean 'scheduler.warmup_steps'?"),
        ("train model=transformer_base", "model.encoder.heads", "did you mean 'model.encoder.num_heads'?"),
        ("train", "model.encoder.layers", "did you mean 'model.encoder.num_layers'?"),
        ("train", "dropout", "did you mean 'model.decoder.dropout' or 'model.encoder.dropout'?"),
        ("train", "lora.r", "write adapter=lora adapter.rank=N"),
        ("train", "src", "write data.train='[FILE.en,FILE.de]'; data.src_lang and data.tgt_lang name languages"),
        ("train", "xyzzy", ""),
        ("train", "data.path", ""),
        ("train", "trainer.lr", "did you mean 'optimizer.lr'?"),
        ("prepare", "dataset", "write data.train='[FILE.en,FILE.de]'"),
        ("evaluate", "tgt", "write test='[FILE.en,FILE.de]'"),
        ("evaluate", "num_beams", "did you mean 'search.beam'?"),
        ("evaluate", "lora", ""),
        ("export", "output_dir", "did you mean 'out'?"),
        ("export", "fp16", "write precision=fp16"),
        ("translate --", "--from", "did you mean --src?"),
        ("translate --", "--target-lang", "did you mean --tgt?"),
        ("translate --", "--heatmap", "did you mean --attention?"),
        ("translate --", "--nbest", "did you mean --n-best?"),
        ("translate --", "--beem", "did you mean --beam?"),
        ("serve --", "--timeout", "did you mean --deadline?"),
        ("import --", "--from", "did you mean --src-lang?"),
        ("POST", "num_beams", "did you mean 'beam'?"),
        ("POST", "max_new_token", "did you mean 'max_length'?"),
        ("POST", "q", "did you mean 'text'?"),
        ("POST", "to", "did you mean 'target'?"),
        ("LibreTranslate", "target_lang", "did you mean 'target'?"),
        ("LibreTranslate", "num_hypotheses", "did you mean 'alternatives'?"),
        ("Translator()", "device", "did you mean 'provider'?"),
        ("translate()", "num_return_sequences", "did you mean 'n_best'?"),
    ],
)  # fmt: skip
def test_an_option(surface: str, word: str, suggested: str) -> None:
    assert did_you_mean(word, SURFACES[surface]) == suggested


@pytest.mark.parametrize(
    ("word", "suggested"),
    [
        ("generate", "did you mean 'translate'?"),
        ("preprocess", "did you mean 'prepare'?"),
        ("build-vocab", "did you mean 'prepare'?"),
        ("generat", "did you mean 'translate'?"),
        ("evalute", "did you mean 'evaluate'?"),
        ("wed", ""),
    ],
)
def test_a_command(word: str, suggested: str) -> None:
    assert did_you_mean(word, COMMAND_NAMES, COMMANDS) == suggested


@pytest.mark.parametrize(
    ("group", "word", "suggested"),
    [
        ("model", "marian", "did you mean 'transformer_base'?"),
        (
            "model",
            "M2M100",
            "softsearch import FOLDER --out RUN reads the weights of a MarianMT or M2M-100; then write init=RUN",
        ),
        ("model", "Transformer", "did you mean 'transformer_tiny', 'transformer_base' or 'transformer_big'?"),
        ("optimizer", "AdamW", "did you mean 'adamw'?"),
        ("search", "beam-search", "did you mean 'beam'?"),
        ("logger", "wandbb", "did you mean 'wandb'?"),
        ("metric", "comet", "softsearch has no neural metric; examples/neural_metric shows how to add one"),
        ("model", "bloom", ""),
    ],
)
def test_a_choice(group: str, word: str, suggested: str) -> None:
    names = [path.stem for path in (CONFIGS / group).glob("*.yaml")]
    assert did_you_mean(word, names, CHOICES) == suggested


@pytest.mark.parametrize(
    ("word", "codes", "suggested"),
    [
        ("German", ["de", "en"], "did you mean de?"),
        ("german", ["deu_Latn", "eng_Latn"], "did you mean deu_Latn?"),
        ("chinese", ["zh-Hans", "zh-Hant", "de"], "did you mean zh-Hans or zh-Hant?"),
        ("de_DE", ["de", "fr"], "did you mean de?"),
        ("klingon", ["de", "fr"], "expected one of de, fr"),
    ],
)
def test_a_language(word: str, codes: list[str], suggested: str) -> None:
    assert nearest_language(word, codes) == suggested


@pytest.mark.parametrize(
    ("table", "surfaces"),
    [(OPTIONS, SURFACES.values()), (COMMANDS, [COMMAND_NAMES]), (CHOICES, [SURFACES["choices"]])],
    ids=["options", "commands", "choices"],
)
def test_every_word_is_answered_somewhere(table: Mapping[str, list[str]], surfaces: Iterable[Iterable[str]]) -> None:
    for word, meanings in table.items():
        for meaning in meanings:
            assert any(did_you_mean(word, names, {word: [meaning]}) for names in surfaces), (word, meaning)
