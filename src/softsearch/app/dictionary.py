"""``dictionary``: word translations counted from the attention of a trained model."""

from itertools import islice

from softsearch.app.config.options import Dictionary
from softsearch.app.config.shorthands import shell_command
from softsearch.app.console import echo, progress
from softsearch.app.systems.open import open_systems
from softsearch.app.systems.texts import read_training_text
from softsearch.errors import ConfigError
from softsearch.evaluation.word_alignment import attention_counts
from softsearch.overwriting import refuse_overwriting
from softsearch.text.word_dictionary import best_translations, write_dictionary


def dictionary(options: Dictionary) -> None:
    """Writes to ``out`` the most frequently aligned translation of each word in the training text of ``ckpt``.

    Raises:
        SoftsearchError: the checkpoint or the text cannot be read, or the model has no attention or no word vocabulary.
    """
    (system,) = open_systems(options.ckpt, None, options.average)
    assert system.source is not None  # it is a checkpoint
    if options.out.is_dir():
        raise ConfigError(f"out={options.out} is a folder, expected the name of a file; set out=FILE.tsv")
    refuse_overwriting({"data": system.source, "out": options.out}, ("out",))  # its corpus, named when it was trained
    pairs = list(islice(read_training_text(system.source, options.cache_dir), options.pairs))
    with progress("aligning", len(pairs)) as advance:
        counts = attention_counts(system.step_fn, system.tokenizers, pairs, advance)
    entries = best_translations(counts)
    write_dictionary(options.out, entries)
    echo(f"{len(entries):,} words of {len(pairs):,} sentence pairs: {options.out}")
    echo(f"next: softsearch translate BUNDLE --replace-unknown {shell_command([str(options.out)])}")
