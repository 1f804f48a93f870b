"""Averages checkpoints: python src/average.py run=RUN last=5 [out=PATH], or ckpt='[a.ckpt,b.ckpt]' out=PATH.

See configs/average.yaml.
"""

from omegaconf import DictConfig

from softsearch.app.main import command


@command("average")
def main(config: DictConfig) -> None:
    """Imports the lab only after the config has been composed, so that a typo is answered at once."""
    from softsearch.app.average import average

    average(config)


if __name__ == "__main__":
    main()
