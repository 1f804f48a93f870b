"""How probable checkpoints and bundles find translations that are known."""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from softsearch.app.config.validation import plain
from softsearch.app.console import plain_console
from softsearch.app.systems.open import open_systems
from softsearch.app.systems.test_set import HeldOutText, read_test_set
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import BATCH_TOKENS
from softsearch.report.folder import all_or_nothing, file_name
from softsearch.runtime.scoring import ScoreWriter
from softsearch.runtime.system import System, combine
from softsearch.search.scoring import score_pairs
from softsearch.text.option_checks import require_bool, require_choice
from softsearch.text.vocabulary import EOS
from softsearch.training.cpu_memory import keep_freed_memory

_CHUNK = 4096  # pairs whose scores are written at once


def score(config: DictConfig) -> None:
    """Scores the pairs of a split, or of the files ``src`` and ``tgt``, with each system or with their ensemble.

    Raises:
        SoftsearchError: a system or the text cannot be read, or an option is wrong.
    """
    keep_freed_memory()
    options = plain(config)
    require_bool("tokens", options["tokens"])
    if options["ensemble"] is not None:  # unnormalised, what comes out would be no probabilities
        require_choice("ensemble", options["ensemble"], ("log_probs", "probs"))
    files = _files(options)
    if options["weights"] is not None and options["ensemble"] is None:
        raise ConfigError("weights is set, but ensemble is null; set ensemble=log_probs or ensemble=probs")
    systems = open_systems(options["ckpt"], options["bundle"], options["average"])
    text = read_test_set(config, options | {"test": files}, systems)
    if options["ensemble"] is not None:
        systems = [combine(systems, options["ensemble"], options["weights"])]
    folder, summaries = Path(options["run_dir"]), []
    with all_or_nothing(folder) as new:
        for system in systems:
            name = "scores.tsv" if len(systems) == 1 else f"scores.{file_name(system.name)}.tsv"
            summary = _score(system, text, new / name, tokens=options["tokens"])
            summaries.append(f"{system.name}: {summary}: {folder / name}")
    plain_console().print("\n".join(summaries), soft_wrap=True, highlight=False)


def _files(options: dict[str, Any]) -> list[str] | None:
    src, tgt = options["src"], options["tgt"]
    if src is None and tgt is None:
        return None
    if src is None or tgt is None:
        raise ConfigError(f"src={src} and tgt={tgt}: expected both or neither; set both, as in src=x.en tgt=x.de")
    return [str(src), str(tgt)]


def _score(system: System, text: HeldOutText, path: Path, *, tokens: bool) -> str:
    src_tokenizer, tgt_tokenizer = system.tokenizers
    with path.open("wb") as stream:
        writer = ScoreWriter(stream, tgt_tokenizer, tokens=tokens)
        for begin in range(0, len(text.sources), _CHUNK):
            src, tgt = (side[begin : begin + _CHUNK] for side in text.lines)
            src_ids = [[*src_tokenizer.encode(line), EOS] for line in src]
            tgt_ids = [tgt_tokenizer.encode(line) for line in tgt]
            writer.write(tgt_ids, score_pairs(system.step_fn, src_ids, tgt_ids, batch_tokens=BATCH_TOKENS))
    return writer.summary()
