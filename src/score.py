"""Scores given translations with checkpoints and bundles: the same as ``softsearch score``; see configs/score.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("score")
