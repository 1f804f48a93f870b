"""``count``: a language model from counts of the training text instead of training."""

import math

from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.build import build_model, data_maker, search_maker
from softsearch.app.config.composition import typed_options
from softsearch.app.config.options import CountNGrams
from softsearch.app.config.shorthands import shell_command
from softsearch.app.config.validation import read_options
from softsearch.app.console import echo
from softsearch.app.results import build_metrics, print_test, write_hypotheses, write_metrics, write_rows
from softsearch.app.train.model import describe_model
from softsearch.app.train.parts import recorded
from softsearch.app.train.run_folder import check_folder, only_run
from softsearch.app.train.start import Fresh, prepare_data
from softsearch.app.train.summary import test_text
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import BATCH_TOKENS, TorchStepFunction, evaluate, mean_nll
from softsearch.evaluation.test_set import read_split
from softsearch.models.interface import CountedDecoder
from softsearch.search.forced_decoding import score_pairs
from softsearch.training.checkpoints.folder import BEST, LAST, save_weights


def count(config: DictConfig) -> None:
    """Counts a model and tests it, with the options and the run folder of ``train``.

    Raises:
        SoftsearchError: something is wrong with the config or the data, or the model has to be trained.
    """
    options, record = read_options(config, CountNGrams), recorded(config)
    check_folder(options)
    decoder = describe_model(options).decoder
    if not isinstance(decoder, CountedDecoder):
        raise ConfigError(
            f"{type(decoder).__name__} is trained, not counted; type "
            f"{shell_command(('softsearch', 'train', *typed_options()))}, or remove model and experiment"
        )
    metrics, make_search, make_data = build_metrics(options.metric), search_maker(options.search), data_maker(options)
    start = Fresh(options)
    data = prepare_data(make_data(tokenizer=start.tokenizers()), record["data"])
    model = build_model(options.model, data.tokenizers)
    assert isinstance(model.decoder, CountedDecoder)
    model.decoder.count_ngrams(data.training_targets)
    with only_run(options.run_dir):
        start.clear()
        OmegaConf.save(OmegaConf.create(record), options.run_dir / "config.yaml")
        for name in (BEST, LAST):
            path = options.run_dir / "checkpoints" / name
            save_weights(path, model.state_dict(), record, data.tokenizers, data.source)
        val = read_split(data.source, "val", data.cache_dir, "set data.val").joined(data.tokenizers[1])
        loss = mean_nll(score_pairs(TorchStepFunction(model), *val.encode(data.tokenizers), batch_tokens=BATCH_TOKENS))
        row = {"step": 0, "val/loss": loss, "val/perplexity": math.exp(loss)}
        write_rows(options.run_dir / "metrics.csv", [row])
        facts = {"model/parameters": float(sum(w.numel() for w in model.weights()))}
        if options.test:
            split, text = test_text(data, options.test)
            hypotheses, scores = evaluate(model, data.tokenizers, make_search(data.tokenizers), text, metrics)
            write_hypotheses(options.run_dir, split, hypotheses)
            write_metrics(options.run_dir, scores.prefixed(split), facts, model=options.name, text=text)
            print_test(options.run_dir, split, scores, facts)
    echo(f"checkpoint: {options.run_dir / 'checkpoints' / BEST} (val/perplexity {row['val/perplexity']:.4g})")
