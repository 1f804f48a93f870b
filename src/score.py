"""Scores translations that are known: python src/score.py ckpt=... | bundle=... [src=x.en tgt=x.de] [key=value ...].

See configs/score.yaml.
"""

from omegaconf import DictConfig

from softsearch.app.main import command


@command("score")
def main(config: DictConfig) -> None:
    """Imports the lab only after the config has been composed, so that a typo is answered at once."""
    from softsearch.app.score import score

    score(config)


if __name__ == "__main__":
    main()
