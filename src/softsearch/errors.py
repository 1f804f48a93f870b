"""The one tree of errors that users see.

Every message says what went wrong, where (file:line or key path), what was found, what was expected and what to do.
"""


class SoftsearchError(Exception):
    """An error whose message is meant for the user: commands print it without a traceback and exit with 1."""


class CorpusError(SoftsearchError):
    """A corpus file is missing, damaged or not parallel."""


class ConfigError(SoftsearchError):
    """A configuration key or value is wrong."""


class CheckpointError(SoftsearchError):
    """A checkpoint is missing, damaged or does not fit."""


class BundleError(SoftsearchError):
    """An exported bundle is missing, damaged, altered or of an unknown version."""


class InputError(SoftsearchError):
    """A text or request given at run time cannot be handled."""
