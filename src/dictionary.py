"""Builds a dictionary for unknown words: python src/dictionary.py ckpt=RUN/checkpoints/best.ckpt out=FILE.tsv.

See configs/dictionary.yaml.
"""

from omegaconf import DictConfig

from softsearch.app.main import command


@command("dictionary")
def main(config: DictConfig) -> None:
    """Imports the lab only after the config has been composed, so that a typo is answered at once."""
    from softsearch.app.dictionary import dictionary

    dictionary(config)


if __name__ == "__main__":
    main()
