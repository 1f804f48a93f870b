"""``score``: log probabilities of reference translations under checkpoints and bundles."""

from softsearch.app.config.options import Score
from softsearch.app.console import echo, progress
from softsearch.app.results import all_or_nothing, file_name
from softsearch.app.systems.open import open_systems
from softsearch.app.systems.texts import read_test_set
from softsearch.errors import ConfigError
from softsearch.evaluation.systems import lab_ensemble
from softsearch.evaluation.text_checks import text_problems
from softsearch.runtime.scoring import ScoreWriter

_CHUNK = 1024  # pairs scored before their scores are written


def score(options: Score) -> None:
    """Scores the pairs of a split, or of the files ``src`` and ``tgt``, with all systems or their ensemble.

    Raises:
        SoftsearchError: a system or the text cannot be read, or an option is wrong.
    """
    if (options.src is None) != (options.tgt is None):
        raise ConfigError(
            f"src={options.src} and tgt={options.tgt}: expected both or neither; set both, as in src=x.en tgt=x.de"
        )
    if options.weights is not None and options.ensemble is None:
        raise ConfigError("weights is set, but ensemble is null; set ensemble=log_probs or ensemble=probs")
    files = None if options.src is None or options.tgt is None else (options.src, options.tgt)
    systems = open_systems(options.ckpt, options.bundle, options.average)
    text = read_test_set(options, files, systems, "src=x.en tgt=x.de")
    for problem in text_problems(text, systems, {}):
        echo(f"warning: {problem}")
    if options.ensemble is not None:
        systems = [lab_ensemble(systems, options.ensemble, options.weights)]
    summaries = []
    with all_or_nothing(options.run_dir) as new:
        for system in systems:
            name = "scores.tsv" if len(systems) == 1 else f"scores.{file_name(system.name)}.tsv"
            src, tgt = text.encode(system.tokenizers)
            with (new / name).open("wb") as stream:
                writer = ScoreWriter(stream, tokens=options.tokens)
                with progress(system.name, len(src)) as advance:
                    for begin in range(0, len(src), _CHUNK):
                        scores = system.score(src[begin : begin + _CHUNK], tgt[begin : begin + _CHUNK])
                        writer.write(scores)
                        advance(len(scores))
            summaries.append(f"{system.name}: {writer.summary()}: {options.run_dir / name}")
    echo("\n".join(summaries))
