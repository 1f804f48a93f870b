"""Compares runs: python src/compare.py runs='[logs/a,logs/b]', or a glob as in runs='logs/train/*'.

See configs/compare.yaml.
"""

from omegaconf import DictConfig

from softsearch.app.main import command


@command("compare")
def main(config: DictConfig) -> None:
    """Imports the lab only after the config has been composed, so that a typo is answered at once."""
    from softsearch.app.compare import compare

    compare(config)


if __name__ == "__main__":
    main()
