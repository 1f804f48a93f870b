"""One file per callback."""
