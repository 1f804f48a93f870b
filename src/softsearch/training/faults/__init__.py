"""Fault tolerance: non-finite steps, lack of memory, SIGTERM."""
