"""Analyses of finished runs for claims of papers."""
