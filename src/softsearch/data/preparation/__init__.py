"""From text files to token ids on disk."""
