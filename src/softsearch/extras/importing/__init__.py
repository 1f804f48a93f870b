"""``softsearch import``: models of other programs as runs of this lab, one module for each family."""

from softsearch.commands import Command

IMPORT = Command(
    "import",
    "Makes a run of a model that another program trained",
    "softsearch.extras.importing.command:import_model",
    options="softsearch.extras.importing.options:add_options",
    needs="lab",
)
