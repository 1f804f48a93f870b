from .functions import Evaluation as Evaluation
from .functions import evaluate as evaluate
from .functions import export as export
from .functions import load as load
from .functions import prepare as prepare
from .functions import save as save
from .functions import train as train
from .run import Run as Run
