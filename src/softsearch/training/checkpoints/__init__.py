"""Checkpoint files: writing, reading, choosing and averaging."""
