"""``softsearch import``: converts models of other programs to runs, with one module per family."""

from softsearch.commands import Command

IMPORT = Command(
    "import",
    "Convert a model trained by another program to a run",
    "softsearch.extras.importing.command:import_model",
    options="softsearch.extras.importing.options:add_options",
    needs="lab",
    writes=("out/",),
)
