"""Composition, options and validation of YAML configs, and the objects built from them."""
