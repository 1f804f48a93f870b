from .bundle import Bundle as Bundle
from .cli import run_command as run_command
from .glossary import Glossary as Glossary
from .session import OnnxStepFunction as OnnxStepFunction
from .stages.stage import Stage as Stage
from .translation import Lines as Lines
from .translation import Translation as Translation
from .translator import Translator as Translator
