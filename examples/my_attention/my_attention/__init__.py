"""Your own parts for softsearch."""
