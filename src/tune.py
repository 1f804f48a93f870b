"""Tunes how models work together: python src/tune.py ckpt='[a.ckpt,b.ckpt]' [bundle=FOLDER] [key=value ...].

See configs/tune.yaml.
"""

from softsearch.app.start import start

if __name__ == "__main__":
    start("tune", "softsearch.app.tune.tune")
