"""Builds a dictionary for unknown words: the same as ``softsearch dictionary``; see configs/dictionary.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("dictionary")
