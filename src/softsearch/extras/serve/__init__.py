"""HTTP server and browser page: worker processes translate the lines of many clients in common batches."""

from softsearch.commands import Command

_HERE = "softsearch.extras.serve"
SERVE = Command(
    "serve",
    "Translate over HTTP and in the browser page at /; SIGHUP reloads the bundles",
    f"{_HERE}.command:serve",
    options=f"{_HERE}.settings:add_serve_options",
    needs="serve",
)
WEB = Command(
    "web",
    "Write a site for any static web host that translates in the visitor's browser",
    f"{_HERE}.web.command:web",
    options=f"{_HERE}.web.command:add_options",
    writes=("out/",),
)
