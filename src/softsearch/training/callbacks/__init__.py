"""Callbacks of the trainer."""
