"""Tunes how models work together: python src/tune.py ckpt='[a.ckpt,b.ckpt]' [bundle=FOLDER] [key=value ...].

See configs/tune.yaml.
"""

from omegaconf import DictConfig

from softsearch.app.main import command


@command("tune")
def main(config: DictConfig) -> None:
    """Imports the lab only after the config has been composed, so that a typo is answered at once."""
    from softsearch.app.tune import tune

    tune(config)


if __name__ == "__main__":
    main()
