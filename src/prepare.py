"""Prepares the data of a run beforehand: the same as ``softsearch prepare``; see configs/prepare.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("prepare")
