"""Trains a model: python src/train.py model=rnnsearch data=multi30k [key=value ...]; see configs/train.yaml."""

from omegaconf import DictConfig

from softsearch.app.main import command


@command("train")
def main(config: DictConfig) -> None:
    """Imports the lab only after the config has been composed, so that a typo is answered at once."""
    from softsearch.app.run import train

    train(config)


if __name__ == "__main__":
    main()
