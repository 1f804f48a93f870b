"""The course in ``notebooks/``: exercises that compare a reader's function with ours.

>>> from softsearch.extras.course import check
>>> check("bleu_precision", my_function)
"""

from softsearch.extras.course.verdict import check

__all__ = ["check"]
