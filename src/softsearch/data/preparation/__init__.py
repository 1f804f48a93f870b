"""Preparation of text files as token ids on disk."""
