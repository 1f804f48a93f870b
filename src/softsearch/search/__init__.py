"""Search over a :class:`~softsearch.search.interface.StepFunction`, in NumPy, written once for every backend."""
