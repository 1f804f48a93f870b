"""Exports a checkpoint: python src/export.py ckpt=RUN/checkpoints/best.ckpt out=exports/NAME [key=value ...].

See configs/export.yaml.
"""

from omegaconf import DictConfig

from softsearch.app.main import command


@command("export")
def main(config: DictConfig) -> None:
    """Imports the lab only after the config has been composed, so that a typo is answered at once."""
    from softsearch.app.export import export

    export(config)


if __name__ == "__main__":
    main()
