"""Shows the main job from end to end: the same as ``softsearch demo``."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("demo")
