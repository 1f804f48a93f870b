from . import contract as contract
from . import export as export
from .models import example_batch as example_batch
from .models import small_model as small_model
