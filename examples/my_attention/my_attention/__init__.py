"""Parts of one's own for softsearch."""
