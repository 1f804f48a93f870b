"""Exports a checkpoint as a bundle: the same as ``softsearch export``; see configs/export.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("export")
