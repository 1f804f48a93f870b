"""Where parallel text comes from: a generator, a pinned download, the user's own files."""
