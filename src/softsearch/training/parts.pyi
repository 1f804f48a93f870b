from .checkpoints.checkpoint_contents import is_weight as is_weight
from .checkpoints.checkpoint_io import check_archive as check_archive
from .checkpoints.checkpoint_io import load_plain as load_plain
