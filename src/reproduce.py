"""Repeats what a paper claims: the same as ``softsearch reproduce``; see configs/reproduce.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("reproduce")
