"""Prepares a run's data: python src/prepare.py [the options of train.py] [processes=N]; see configs/prepare.yaml."""


def main() -> None:
    """Imports here, for each process that it starts imports this file and needs neither Hydra nor PyTorch."""
    from omegaconf import DictConfig

    from softsearch.app.main import command

    @command("prepare")
    def prepare(config: DictConfig) -> None:
        from softsearch.app.prepare import prepare

        prepare(config)

    prepare()


if __name__ == "__main__":
    main()
