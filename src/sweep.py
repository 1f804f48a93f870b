"""Searches for good settings: python src/sweep.py sweep=NAME [trials=N] [key=value ...]; see configs/sweep.yaml."""

from omegaconf import DictConfig

from softsearch.app.main import command
from softsearch.errors import ConfigError


@command("sweep")
def main(config: DictConfig) -> None:
    """Imports Optuna only after the config has been composed, so that a typo is answered at once.

    Raises:
        ConfigError: Optuna is not installed.
    """
    try:
        from softsearch.app.sweep import sweep
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise ConfigError("a sweep needs Optuna, which is not installed: pip install 'softsearch[sweep]'") from error
    sweep(config)


if __name__ == "__main__":
    main()
