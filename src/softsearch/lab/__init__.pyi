from .functions import Evaluation as Evaluation, evaluate as evaluate, export as export, load as load, train as train
from .run import Run as Run
