"""Sources of parallel text: a generator, a pinned download, the user's own files."""
