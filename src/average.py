"""Averages checkpoints: python src/average.py run=RUN last=5 [out=PATH], or ckpt='[a.ckpt,b.ckpt]' out=PATH.

See configs/average.yaml.
"""

from softsearch.app.start import start

if __name__ == "__main__":
    start("average", "softsearch.app.average.average")
