"""Fault tolerance: non-finite steps, exhausted memory, SIGTERM."""
