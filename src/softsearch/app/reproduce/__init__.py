"""``reproduce``: what papers claim, trained, measured and judged by one command."""
