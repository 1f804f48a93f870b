from .errors import BundleError as BundleError
from .errors import CheckpointError as CheckpointError
from .errors import ConfigError as ConfigError
from .errors import CorpusError as CorpusError
from .errors import InputError as InputError
from .errors import SoftsearchError as SoftsearchError
from .runtime import Bundle as Bundle
from .runtime import Translation as Translation
from .runtime import Translator as Translator

__version__: str
