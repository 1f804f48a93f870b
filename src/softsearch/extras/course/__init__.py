"""The course in ``notebooks/``: exercises that compare a reader's function with ours.

>>> from softsearch.extras.course import check
>>> check("bleu_precision", my_function)
"""

import warnings

# Lightning imports tqdm, which wants a package for its bars in notebooks; the course shows none.
warnings.filterwarnings("ignore", message="IProgress not found")

from softsearch.extras.course.verdict import check  # noqa: E402

__all__ = ["check"]
