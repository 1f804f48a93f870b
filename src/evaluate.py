"""Scores a checkpoint: python src/evaluate.py ckpt=RUN/checkpoints/best.ckpt [key=value ...].

See configs/evaluate.yaml.
"""

from omegaconf import DictConfig

from softsearch.app.main import command


@command("evaluate")
def main(config: DictConfig) -> None:
    """Imports the lab only after the config has been composed, so that a typo is answered at once."""
    from softsearch.app.evaluate import evaluate

    evaluate(config)


if __name__ == "__main__":
    main()
