"""Tunes the weights of an ensemble or a reranker: the same as ``softsearch tune``; see configs/tune.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("tune")
