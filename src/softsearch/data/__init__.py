"""Parallel text as batches of token ids."""
