"""``reproduce`` and ``history``: claims of papers, trained, measured and judged, and all architectures on one page."""
