"""HTTP server and browser page: lines of many clients are batched and translated by worker processes."""

from softsearch.commands import Command

_HERE = "softsearch.extras.serve"
SERVE = Command(
    "serve",
    "Translates for clients over HTTP, and in the browser page at /; SIGHUP opens the bundles again",
    f"{_HERE}.command:serve",
    options=f"{_HERE}.settings:add_serve_options",
    needs="serve",
)
WEB = Command(
    "web",
    "Writes a folder for any static web host, whose page translates on the visitor's machine",
    f"{_HERE}.web.command:web",
    options=f"{_HERE}.web.command:add_options",
)
