"""Where a run starts from, by its options."""

from softsearch.app.config.options import Train
from softsearch.app.train.run_folder import check_folder
from softsearch.app.train.start import Fresh, Start
from softsearch.errors import ConfigError


def choose_start(options: Train) -> Start:
    """Chooses how the run starts: Fresh, Adapted or Resumed.

    Raises:
        ConfigError: the options contradict each other, or the folder has another run.
        CheckpointError: a checkpoint cannot be read.
    """
    check_folder(options)
    if options.init.ckpt is not None:
        from softsearch.app.train.init import Adapted, check_init

        check_init(options)
    elif options.init.vocabulary != "keep" or options.init.parts is not None:
        raise ConfigError(
            "init.vocabulary and init.parts select what to take from a run, but there is none; set init=RUN"
        )
    if options.resume is not None:
        from softsearch.app.train.resume import Resumed, checkpoint_to_resume

        if (checkpoint := checkpoint_to_resume(options.resume, options.run_dir)) is not None:
            return Resumed(options, checkpoint)
    return Fresh(options) if options.init.ckpt is None else Adapted(options)
