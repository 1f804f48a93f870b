"""Scores translations that are known: python src/score.py ckpt=... | bundle=... [src=x.en tgt=x.de] [key=value ...].

See configs/score.yaml.
"""

from softsearch.app.start import start

if __name__ == "__main__":
    start("score", "softsearch.app.score.score")
