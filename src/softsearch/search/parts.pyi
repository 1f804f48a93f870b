from .options import MAX_BEAM as MAX_BEAM
from .options import Average as Average
from .rerank import ScoredHypothesis as ScoredHypothesis
from .rerank import ranked as ranked
