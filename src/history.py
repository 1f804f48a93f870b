"""The history of translation on one page: the same as ``softsearch history``; see configs/history.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("history")
