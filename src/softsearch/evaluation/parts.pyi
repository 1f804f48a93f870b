from .inference import TorchState as TorchState
from .measure import Evaluator as Evaluator
from .metrics import bleu_for as bleu_for
from .systems import LabSystem as LabSystem
from .systems import lab_ensemble as lab_ensemble
from .test_set import read_split as read_split
from .text_checks import language_problems as language_problems
from .text_checks import text_problems as text_problems
